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

/// Inputs of the passes besides the graph.
struct PassContext {
  /// Computes constants: a device of host memory, and its kernels. Null: none are folded.
  const DeviceContext* host = nullptr;
  const KernelTables* kernels = nullptr;
  /// The pairs of ops that the step's devices can run as one. Null: nothing is fused.
  const Fusions* fusions = nullptr;
  /// The devices of the step that run chains of elementwise nodes as one. Null: none.
  const Chains* chains = nullptr;
  /// A partial run: a feed may wait for a tensor that was made of another feed.
  bool feeds_come_apart = false;
  /// Called now and then; throws to give up (a deadline). Null: nothing to call.
  FunctionRef<void()>* check = nullptr;
  /// The bodies that calls share. Null: `optimize` finds them itself.
  std::map<const StepGraph*, OptimizedBody>* bodies = nullptr;

  void check_in(std::size_t i) const {
    if (check != nullptr && i % 1024 == 0) (*check)();
  }
};

namespace detail {
/// A hash of everything that `merge_common_subexpressions` compares: equal for nodes that compute the same, and
/// hardly ever equal for other nodes.
std::uint64_t node_hash(const StepGraph& graph, const StepNode& node);
}  // namespace detail

// Passes work on graphs without cycles. Errors: InvalidArgument, naming a node that depends on a later one.

/// Merges nodes that compute the same: equal op, element types, attributes, inputs and control inputs, device.
/// Stateful ops and targets stay.
StepGraph merge_common_subexpressions(StepGraph graph, const PassContext& context = {});

/// Puts one node in the place of two if the device of both has a kernel for that, and nothing but the second needs
/// the first: no other node, fetch, feed, target or control edge. The new node has the second's name.
StepGraph fuse(StepGraph graph, const PassContext& context);

/// Runs the passes that `options` switches on. After each pass it drops the nodes that the pass left without a
/// reader.
StepGraph optimize(StepGraph graph, const PassOptions& options, const PassContext& context);

}  // namespace dflow
