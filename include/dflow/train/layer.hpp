#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/train/initializers.hpp>
#include <dflow/train/regularizers.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

class NodeList;
struct VariableScopeState;

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

/// One call of a layer, the first of which makes its variables: what the call makes is the layer's and in the graph's
/// collections once all of it is built, at `commit`. Without that the nodes of a first call are gone, and its name in
/// the variable scope is free again.
class LayerBuilder {
 public:
  /// Errors of a later call: InvalidArgument for another graph or element type of inputs than the first one's.
  LayerBuilder(LayerState& state, GraphStore& graph, DType inputs, const At& at);
  LayerBuilder(const LayerBuilder&) = delete;
  LayerBuilder& operator=(const LayerBuilder&) = delete;
  ~LayerBuilder();

  bool is_first_call() const noexcept { return state_.variables.empty(); }
  /// Inside of a variable scope, found or made as that says.
  AnyVariable make(std::string_view name, DType dtype, const Shape& shape, const Initializer& initializer,
                   const Regularizer& regularizer = {}, bool trainable = true);
  /// That this call made, or the first one.
  AnyVariable variable(std::string_view name) const;

  /// What variables are made in, where they are not kept in another type than the call computes in.
  DType variable_dtype() const noexcept { return is_mixed_ ? DType::float32 : inputs_; }
  /// The input, and the variable's value, in what the call computes in (`VariableScopeOptions::compute`).
  AnyOutput input(const AnyOutput& x) const;
  AnyOutput value(std::string_view name) const;
  /// In the inputs' element type.
  AnyOutput result(const AnyOutput& y) const;

  /// Puts the node in a collection of the graph, at `commit`.
  void list(std::string_view collection, NodeId node) { listed_.push_back({collection, node}); }
  void commit();

 private:
  LayerState& state_;
  GraphStore& graph_;
  DType inputs_, compute_;
  bool is_mixed_ = false;  ///< computes in what the scope says
  const At& at_;
  std::optional<GraphStore::Draft> draft_;  ///< of a first call
  std::shared_ptr<VariableScopeState> variables_;
  LayerState made_;
  bool takes_name_ = false;  ///< `made_.scope_name`, until `commit`
  std::vector<std::pair<std::string_view, NodeId>> listed_;
};

/// Inside, everything is named after the layer.
[[nodiscard]] ScopeGuard enter_layer(GraphStore& graph, const LayerState& state, const At& at);
[[noreturn]] void reject_layer(std::string_view layer, const std::string& message, const At& at);
/// The last dimension of a layer's input, which sizes its variables.
std::int64_t known_channels(const AnyOutput& x, int min_rank, int max_rank_allowed, std::string_view layer,
                            const At& at);
void require_positive(std::int64_t value, std::string_view what, std::string_view layer, const At& at);

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

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/train/layer.ipp>
#endif
