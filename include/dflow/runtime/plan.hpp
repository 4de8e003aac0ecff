#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/kernel.hpp>
#include <dflow/op/op_table.hpp>
#include <dflow/runtime/inter_op.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow {

/// Kernels of stateful nodes by node name: they keep what they own (a random stream's position) across plans.
using StatefulKernels = std::unordered_map<std::string, std::shared_ptr<AnyKernel>>;

/// A graph on one device, compiled for running: nodes in dense arrays in a frozen order, edges as slot numbers, kernels
/// made, counts of pending inputs and of readers precomputed.
///
/// A unit is a stretch of cheap synchronous nodes, or one expensive node with the cheap ones that depend on it alone: it runs in
/// one go in one thread, so edges inside it cost no counter.
///
/// Thread safety: immutable after `compile`; any number of steps may run it at once.
class Plan {
 public:
  struct PlanNode {
    const AnyKernel* kernel = nullptr;
    KernelContext::Wiring wiring;
    std::int32_t release_begin = 0;  ///< into `released`: slots that this node is the last to read
    std::int32_t release_end = 0;
    std::int32_t share_begin = 0;  ///< into `shared_reads`: slots with readers in several units
    std::int32_t share_end = 0;
    double cost_ns = 0;
  };
  struct Unit {
    std::int32_t node_begin = 0;
    std::int32_t node_end = 0;
    std::int32_t consumer_begin = 0;  ///< into `unit_consumers`
    std::int32_t consumer_end = 0;
    std::int32_t pending = 0;  ///< units that must have finished before
    bool is_async = false;     ///< a single asynchronous node
    bool is_expensive = false; ///< worth waking another thread for
  };

  /// `device_owner` keeps the device (and with it the allocator of folded constants) alive as long as the plan.
  /// Errors: NotFound if an op has no kernel for the device; whatever making a kernel throws, with the node added.
  static std::shared_ptr<const Plan> compile(StepGraph graph, const OpTable& table, const DeviceContext& device,
                                             StatefulKernels* stateful, InterOp inter_op, bool reuse_buffers,
                                             std::shared_ptr<const void> device_owner = nullptr);

  std::span<const PlanNode> nodes() const noexcept { return nodes_; }
  std::span<const Unit> units() const noexcept { return units_; }
  std::span<const std::int32_t> unit_consumers() const noexcept { return unit_consumers_; }
  std::span<const std::int32_t> released() const noexcept { return released_; }
  std::span<const std::int32_t> shared_reads() const noexcept { return shared_reads_; }
  std::span<const std::int32_t> shared_read_counts() const noexcept { return shared_read_counts_; }
  std::span<const std::pair<std::int32_t, AnyTensor>> constants() const noexcept { return constants_; }
  std::span<const std::int32_t> feed_slots() const noexcept { return feed_slots_; }
  std::span<const std::int32_t> fetch_slots() const noexcept { return fetch_slots_; }
  /// Slots that still hold a tensor after a run: what was fed and fetched, but for constants.
  std::span<const std::int32_t> cleared_slots() const noexcept { return cleared_slots_; }
  std::int32_t num_slots() const noexcept { return num_slots_; }
  /// All nodes are synchronous and run in order in the calling thread.
  bool is_sequential() const noexcept { return is_sequential_; }
  bool has_async_nodes() const noexcept { return has_async_nodes_; }
  const DeviceContext& device() const noexcept { return *device_; }
  const StepGraph& graph() const noexcept { return graph_; }

 private:
  friend class PlanCompiler;
  Plan() = default;

  std::shared_ptr<const void> device_owner_;  // first, so destroyed last
  StepGraph graph_;
  const DeviceContext* device_ = nullptr;
  std::vector<std::shared_ptr<AnyKernel>> kernels_;
  std::vector<PlanNode> nodes_;
  std::vector<Unit> units_;
  std::vector<std::int32_t> unit_consumers_;
  std::vector<std::int32_t> input_slots_;
  std::vector<std::int32_t> released_;
  std::vector<std::int32_t> shared_reads_;
  std::vector<std::int32_t> shared_read_counts_;  ///< per slot; 0 where one unit does all the reading
  std::vector<std::pair<std::int32_t, AnyTensor>> constants_;
  std::vector<std::int32_t> feed_slots_;
  std::vector<std::int32_t> fetch_slots_;
  std::vector<std::int32_t> cleared_slots_;
  std::int32_t num_slots_ = 0;
  bool is_sequential_ = true;
  bool has_async_nodes_ = false;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/runtime/plan.ipp>
#endif
