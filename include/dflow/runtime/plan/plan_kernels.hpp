#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

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

/// Makes the kernels of one plan, and of what it calls.
///
/// Thread safety: used by the thread that compiles.
class PlanKernels {
 public:
  /// They must outlive it.
  PlanKernels(const StepGraph& graph, const DeviceContext& device, const PlanOptions& options)
      : graph_(graph), device_(device), options_(options) {}

  /// The row of the table that a node's kernel is made by. Errors: NotFound if there is none for its element types,
  /// InvalidArgument if the op is another one of that name, with the node added.
  const KernelEntry& entry_of(const Node& node);
  /// What a node that calls functions runs; the bodies are plans of their own.
  const AnyKernel& make_call(const StepNode& node);
  /// Throws whatever making the kernel does, with the node added.
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

  const StepGraph& graph_;
  const DeviceContext& device_;
  const PlanOptions& options_;
  std::unordered_map<const OpDef*, const KernelEntry*> entry_of_op_;
  std::shared_ptr<CalledPlans> own_called_;
};

}  // namespace dflow::detail
