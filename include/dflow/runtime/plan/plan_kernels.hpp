#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/runtime/plan/plan_joins.hpp>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace dflow {
class Plan;
struct PlanOptions;
}  // namespace dflow

namespace dflow::detail {

struct CalledPlans;

/// The kernels of the nodes of a step.
///
/// A fed placeholder has no kernel, since its slot is the feed's, and neither has a constant, which lives in its slot.
/// A constant that comes after nodes that run has a kernel without outputs, so nodes that wait for it wait.
///
/// Thread safety: a value type.
struct NodeKernels {
  IndexedVector<StepNodeId, const AnyKernel*> kernels;       ///< null: the node does not run
  IndexedVector<StepNodeId, const KernelEntry*> entries;     ///< null for constants and calls as well
  IndexedVector<StepNodeId, PlanJoins::Candidate> joinable;  ///< how a node runs as one with others
  IndexedVector<StepNodeId, double> cost_ns;
  bool carries_dead = false;  ///< some kernel makes dead outputs
  bool nests = false;         ///< some kernel does

  bool runs(StepNodeId id) const { return kernels[id] != nullptr; }
};

/// Calls `options.check`, where there is one, at a node now and then.
void check_in(const PlanOptions& options, const StepGraph& graph, StepNodeId id);

/// Makes the kernels of one plan, and of the bodies that it calls.
///
/// Thread safety: used by the thread that compiles.
class PlanKernels {
 public:
  /// They must outlive it.
  PlanKernels(const StepGraph& graph, const DeviceContext& device, const PlanOptions& options)
      : graph_(graph), device_(device), options_(options) {}

  /// Makes the kernels of all nodes. Errors: InvalidArgument for a placeholder that is not fed; as the functions
  /// below; as `options.check`.
  NodeKernels make_all();
  /// The row of the table that a node's kernel is made by. Errors: NotFound if there is none for its element types,
  /// InvalidArgument if the op is another one of that name, with the node added.
  const KernelEntry& entry_of(const Node& node);
  /// The kernel of a node that calls functions; the bodies are plans of their own.
  const AnyKernel& make_call(const StepNode& node);
  /// Errors: as making the kernel, with the node added.
  const AnyKernel& make(const KernelInit& init);
  const AnyKernel& own(std::unique_ptr<AnyKernel> kernel) {
    made.push_back(std::move(kernel));
    return *made.back();
  }

  std::vector<std::unique_ptr<AnyKernel>> made;
  std::vector<std::shared_ptr<AnyKernel>> kept;  ///< of a KeptKernels too

 private:
  const AnyKernel& own_kept(std::shared_ptr<AnyKernel> kernel) {
    kept.push_back(std::move(kernel));
    return *kept.back();
  }
  PlanJoins::Candidate joinable(const KernelInit& init) const;
  const AnyKernel& after_controls();

  const StepGraph& graph_;
  const DeviceContext& device_;
  const PlanOptions& options_;
  std::unordered_map<const OpDef*, const KernelEntry*> entry_of_op_;
  std::shared_ptr<CalledPlans> own_called_;
  const AnyKernel* after_controls_ = nullptr;
};

}  // namespace dflow::detail
