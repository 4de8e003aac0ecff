#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/train/initializers.hpp>
#include <dflow/train/layer.hpp>
#include <dflow/train/regularizers.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

struct VariableScopeState;

namespace detail {

/// One call of a layer. The first call makes the layer's variables. `commit`, at the end of a call, adds all results
/// of the call to the layer and to the graph's collections. Without `commit` the nodes of a first call are gone, and
/// its name in the variable scope is free again.
class LayerBuilder {
 public:
  /// Errors of a later call: InvalidArgument for another graph or another element type of inputs than in the first
  /// call.
  LayerBuilder(LayerState& state, GraphStore& graph, DType inputs, const At& at);
  LayerBuilder(const LayerBuilder&) = delete;
  LayerBuilder& operator=(const LayerBuilder&) = delete;
  ~LayerBuilder();

  bool is_first_call() const noexcept { return state_.variables.empty(); }
  /// Inside a variable scope, the scope decides whether the variable is found or made.
  AnyVariable make(std::string_view name, DType dtype, const Shape& shape, const Initializer& initializer,
                   const Regularizer& regularizer = {}, bool trainable = true);
  /// The variable that this call or the first call made.
  AnyVariable variable(std::string_view name) const;

  /// The element type of variables, unless a layer keeps them in another type than the call computes in.
  DType variable_dtype() const noexcept { return is_mixed_ ? DType::float32 : inputs_; }
  /// The input, and the variable's value, in the element type that the call computes in
  /// (`VariableScopeOptions::compute`).
  AnyOutput input(const AnyOutput& x) const;
  AnyOutput value(std::string_view name) const;
  /// y in the inputs' element type.
  AnyOutput result(const AnyOutput& y) const;

  /// Puts the node in a collection of the graph, at `commit`.
  void list(std::string_view collection, NodeId node) { listed_.push_back({collection, node}); }
  void commit();

 private:
  LayerState& state_;
  GraphStore& graph_;
  DType inputs_, compute_;
  bool is_mixed_ = false;  ///< computes in the scope's element type
  const At& at_;
  std::optional<GraphStore::Draft> draft_;  ///< of a first call
  std::shared_ptr<VariableScopeState> variables_;
  LayerState made_;
  bool takes_name_ = false;  ///< `made_.scope_name`, until `commit`
  std::vector<std::pair<std::string_view, NodeId>> listed_;
};

/// Inside the guard, all nodes are named after the layer.
[[nodiscard]] ScopeGuard enter_layer(GraphStore& graph, const LayerState& state, const At& at);
[[noreturn]] void reject_layer(std::string_view layer, const std::string& message, const At& at);
/// The last dimension of a layer's input. It sizes the layer's variables.
std::int64_t known_channels(const AnyOutput& x, int min_rank, int max_rank_allowed, std::string_view layer,
                            const At& at);
void require_positive(std::int64_t value, std::string_view what, std::string_view layer, const At& at);

}  // namespace detail

}  // namespace dflow
