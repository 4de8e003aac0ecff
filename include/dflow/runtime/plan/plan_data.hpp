#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/work_recorder.hpp>
#include <dflow/runtime/plan/plan_constants.hpp>
#include <dflow/runtime/plan/unit_id.hpp>

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace dflow {

/// The place of a node in the order in which a plan runs them.
using PlanNodeId = StrongIndex<struct PlanNodeTag>;

namespace detail {

/// A node of a plan: its kernel, its slots, and the slots that the step empties after it.
struct PlanNode {
  const AnyKernel* kernel = nullptr;
  KernelContext::Wiring wiring;
  std::int32_t release_begin = 0;  ///< into `released`: slots that this node is the last to read
  std::int32_t release_end = 0;
  std::int32_t share_begin = 0;  ///< into `shared_reads`: slots with readers in several units
  std::int32_t share_end = 0;
  bool is_trusted = false;  ///< sets all its outputs
  double cost_ns = 0;
};

/// A stretch of nodes that one thread runs in one go, or a late feed.
struct PlanUnit {
  PlanNodeId node_begin{0};
  PlanNodeId node_end{0};
  std::int32_t consumer_begin = 0;  ///< into `unit_consumers`, asynchronous ones first
  std::int32_t consumer_end = 0;
  std::int32_t fetch_begin = 0;  ///< into `unit_fetches`, if the plan streams: fetches that it makes
  std::int32_t fetch_end = 0;
  std::int32_t pending = 0;   ///< units that must have finished before
  bool is_async = false;      ///< a single asynchronous node
  bool is_nested = false;     ///< a node with a kernel that `nests`
  bool is_expensive = false;  ///< worth waking another thread for
  bool is_brief = false;      ///< kernels of the library that are known to cost less than waking another thread
  bool is_feed = false;       ///< without nodes; finished by a late feed
};

/// Nodes of one unit that the device records.
struct RecordedNodes {
  PlanNodeId node_begin{0};
  PlanNodeId node_end{0};
  std::unique_ptr<WorkRecorder::Record> record;
};

/// The members of a plan. Each stage of `Plan::compile` fills in its own members; `Plan` shows them to steps.
///
/// Thread safety: used by the thread that compiles, then constant.
struct PlanData {
  std::shared_ptr<const void> device_owner;  // first, so destroyed last
  StepGraph graph;
  const DeviceContext* device = nullptr;
  bool streams = false;

  // Kernels.
  std::vector<std::unique_ptr<AnyKernel>> kernels;
  std::vector<std::shared_ptr<AnyKernel>> kept_kernels;  ///< of a KeptKernels too
  std::deque<Node> joint_nodes;                          ///< each stands for nodes that run as one
  bool carries_dead = false;
  bool nests = false;

  // Slots.
  std::size_t num_slots = 0;
  std::vector<SlotId> feed_slots;
  std::vector<SlotId> fetch_slots;
  std::vector<std::pair<SlotId, AnyTensor>> constants;
  std::vector<DeviceConstants::Ref> shared_constants;  ///< the constants that other plans may use

  // Nodes in their order. Wirings point into `input_slots` and `host_outputs`.
  IndexedVector<PlanNodeId, PlanNode> nodes;
  std::vector<SlotId> input_slots;
  std::vector<std::uint8_t> host_outputs;  ///< of the nodes that have any: not 0 where an output is in host memory

  // Units.
  bool is_sequential = true;
  IndexedVector<UnitId, PlanUnit> units;
  std::vector<UnitId> unit_consumers;
  std::vector<UnitId> first_units;
  std::vector<UnitId> feed_units;
  std::vector<UnitId> fetch_units;
  std::vector<std::size_t> unit_fetches;

  // Releases.
  std::vector<SlotId> released;
  std::vector<SlotId> shared_reads;
  IndexedVector<SlotId, std::int32_t> shared_read_counts;  ///< 0 if one unit does all the reading
  std::vector<SlotId> cleared_slots;
  std::vector<SlotId> held_slots;
  std::vector<bool> may_take_fetch;
  std::size_t holds_feeds_from = std::numeric_limits<std::size_t>::max();

  // Records.
  std::vector<RecordedNodes> recorded;

  /// The device records the work of nodes.
  bool records() const noexcept { return device->recorder != nullptr && !streams; }
  /// The slots that a node reads.
  std::span<const SlotId> inputs_of(PlanNodeId node) const noexcept {
    const KernelContext::Wiring& wiring = nodes[node].wiring;
    return {wiring.inputs, static_cast<std::size_t>(wiring.num_inputs)};
  }
};

}  // namespace detail
}  // namespace dflow
