#pragma once

#include <dflow/ops/state/variable.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

class NodeList;

namespace detail {

struct LayerVariable {
  std::string name;  ///< within the layer
  AnyVariable variable;
  bool trainable = true;
};

/// The state that all handles to one layer share.
struct LayerState : std::enable_shared_from_this<LayerState> {
  std::string name;                      ///< of the scope
  std::weak_ptr<const NodeList> graph;   ///< its nodes: a new graph may get the address of a destroyed one
  DType dtype = DType::invalid;          ///< of the inputs
  std::string scope_path, scope_name;    ///< the variable scope of the first call, and the layer's name there
  std::vector<LayerVariable> variables;  ///< none before the first call
  std::vector<AnyOutput> regularization_losses;
};
/// The variable of that name within the layer. Errors: NotFound if there is none.
AnyVariable find_variable(const LayerState& state, std::string_view name);

class LayerBuilder;

}  // namespace detail

/// The common part of layers with variables. A layer makes its variables at its first call, in the graph of that
/// input; each later call uses the same variables. A model that is a function of its layers can be built for training
/// and again for evaluation:
///
/// ```cpp
/// df::Dense hidden(512, {.activation = df::Activation::relu}), out(10);
/// auto model = [&](df::Output<float> x, df::Training training) {
///   return out(df::dropout(hidden(x), 0.5f, training));
/// };
/// auto logits = model(images, df::Training(true)), predicted = model(test_images, df::Training(false));
/// ```
///
/// Variables and nodes of a layer are named "<name>/...", made unique: "dense/kernel". The name comes from the `At` of
/// the first call, or else from the options. Nodes of a later call have a name of their own, "dense_1/MatMul".
///
/// Inside a `VariableScope` the scope decides whether the first call finds or makes its variables.
///
/// A call that fails leaves layer and collections as they were. A layer belongs to the graph of its first call, even
/// after that graph is gone; its variables are valid while the graph lives.
///
/// Thread safety: a copy is a handle to the same layer, and a move is a copy; calls are building, which needs the
/// caller's lock.
/// Errors: InvalidArgument for an input of another graph or element type than the first one.
class Layer {
 public:
  Layer(const Layer&) = default;
  Layer& operator=(const Layer&) = default;

  bool has_variables() const noexcept { return !state_->variables.empty(); }
  /// The variables in the order of their creation; none before the first call.
  std::vector<AnyVariable> variables() const;
  /// The variables that optimizers train.
  std::vector<AnyVariable> trainable_variables() const;
  /// The variable of that name within the layer: "kernel". Errors: NotFound if there is none, as before the first
  /// call.
  AnyVariable variable(std::string_view name) const;
  /// The losses, scalars, that the regularisers give for the variables made by the layer. The graph's collection
  /// "regularization_losses" has them as well.
  const std::vector<AnyOutput>& regularization_losses() const noexcept { return state_->regularization_losses; }
  /// The name of the layer's scope; before the first call, the name from the options.
  const std::string& name() const noexcept { return state_->name; }

 protected:
  explicit Layer(std::string_view name);

  std::shared_ptr<detail::LayerState> state_;
};

}  // namespace dflow
