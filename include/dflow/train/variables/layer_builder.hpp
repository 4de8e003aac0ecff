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

}  // namespace dflow
