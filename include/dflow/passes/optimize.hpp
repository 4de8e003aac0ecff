#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/passes/fusion/chains.hpp>
#include <dflow/passes/fusion/fuse.hpp>
#include <dflow/passes/options.hpp>

#include <cstdint>
#include <map>
#include <memory>

namespace dflow {

/// The body of a function before and after the passes.
struct OptimizedBody {
  std::shared_ptr<const StepGraph> original;
  std::shared_ptr<const StepGraph> optimized;
};

/// What passes are handed besides the graph.
struct PassContext {
  /// Computes constants: a device of host memory, and its kernels. Null: none are folded.
  const DeviceContext* host = nullptr;
  const KernelTables* kernels = nullptr;
  /// What the step's devices can do in one. Null: nothing is fused.
  const Fusions* fusions = nullptr;
  /// Which of the step's devices run chains of elementwise nodes as one. Null: none.
  const Chains* chains = nullptr;
  /// A partial run: a feed may wait for what was made of another.
  bool feeds_come_apart = false;
  /// Called now and then; throws to give up (a deadline). Null: nothing to call.
  FunctionRef<void()>* check = nullptr;
  /// Those that calls share. Null: `optimize` finds them itself.
  std::map<const StepGraph*, OptimizedBody>* bodies = nullptr;

  void check_in(std::size_t i) const {
    if (check != nullptr && i % 1024 == 0) (*check)();
  }
};

inline constexpr std::size_t default_folded_bytes = 10 << 20;

namespace detail {
/// The same for nodes that compute the same, and for others hardly ever: of all that `merge_common_subexpressions`
/// compares.
std::uint64_t node_hash(const StepGraph& graph, const StepNode& node);
}  // namespace detail

// Passes work on graphs without cycles. Errors: InvalidArgument, naming a node that depends on a later one.

/// Replaces nodes whose inputs are all constants by their value, if that is no larger than `max_bytes`. Stateful ops,
/// fed edges, targets, nodes with control inputs and those whose constants have some stay.
StepGraph fold_constants(StepGraph graph, const PassContext& context, std::size_t max_bytes = default_folded_bytes);

/// Merges nodes that compute the same: equal op, element types, attributes, inputs and control inputs, device.
/// Stateful ops and targets stay.
StepGraph merge_common_subexpressions(StepGraph graph, const PassContext& context = {});

/// Puts one node in the place of two where the device of both has a kernel for that, and nothing but the second needs
/// the first: no other node, fetch, feed, target or control edge. It has the second's name.
StepGraph fuse(StepGraph graph, const PassContext& context);

/// Runs the passes that `options` switches on, each followed by dropping what it left without a reader.
StepGraph optimize(StepGraph graph, const PassOptions& options, const PassContext& context);

}  // namespace dflow
