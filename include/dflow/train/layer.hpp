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

/// What all handles to one layer share.
struct LayerState : std::enable_shared_from_this<LayerState> {
  std::string name;                      ///< of the scope
  std::weak_ptr<const NodeList> graph;   ///< its nodes: an address would say nothing of a graph that is gone
  DType dtype = DType::invalid;          ///< of the inputs
  std::string scope_path, scope_name;    ///< the variable scope of the first call, and what it was called there
  std::vector<LayerVariable> variables;  ///< none before the first call
  std::vector<AnyOutput> regularization_losses;
};
/// Of that name within the layer. Errors: NotFound if there is none.
AnyVariable find_variable(const LayerState& state, std::string_view name);

class LayerBuilder;

}  // namespace detail

/// What layers with variables have in common. A layer makes its variables at its first call, in the graph of that
/// input; each later call uses the same ones. So a model that is a function of its layers can be built for training and
/// again for evaluation:
///
/// ```cpp
/// df::Dense hidden(512, {.activation = df::Activation::relu}), out(10);
/// auto model = [&](df::Output<float> x, df::Training training) {
///   return out(df::dropout(hidden(x), 0.5f, training));
/// };
/// auto logits = model(images, df::Training(true)), predicted = model(test_images, df::Training(false));
/// ```
///
/// Variables and nodes of a layer are named "<name>/...", made unique: "dense/kernel". The name is that of the first
/// call's `At`, or else that of the options; nodes of a later call are under a name of their own, "dense_1/MatMul".
///
/// Inside of a `VariableScope` the first call finds or makes its variables as that says.
///
/// A call that fails leaves layer and collections as they were. A layer is of the graph of its first call, also when
/// that is gone; its variables are valid while the graph lives.
///
/// Thread safety: a copy is a handle to the same layer, and a move is a copy; calls are building, which needs the
/// caller's lock.
/// Errors: InvalidArgument for an input of another graph or element type than the first one.
class Layer {
 public:
  Layer(const Layer&) = default;
  Layer& operator=(const Layer&) = default;

  bool has_variables() const noexcept { return !state_->variables.empty(); }
  /// In the order in which they were made; none before the first call.
  std::vector<AnyVariable> variables() const;
  /// Those that optimizers train.
  std::vector<AnyVariable> trainable_variables() const;
  /// Of that name within the layer: "kernel". Errors: NotFound if there is none, as before the first call.
  AnyVariable variable(std::string_view name) const;
  /// What the regularisers give of the variables that the layer has made, scalars. They are in the graph's collection
  /// "regularization_losses" as well.
  const std::vector<AnyOutput>& regularization_losses() const noexcept { return state_->regularization_losses; }
  /// Of its scope; before the first call that of its options.
  const std::string& name() const noexcept { return state_->name; }

 protected:
  explicit Layer(std::string_view name);

  std::shared_ptr<detail::LayerState> state_;
};

}  // namespace dflow
