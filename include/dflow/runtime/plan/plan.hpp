#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/kernels/contract/work_recorder.hpp>
#include <dflow/runtime/inter_op.hpp>
#include <dflow/runtime/plan/plan_constants.hpp>
#include <dflow/runtime/plan/unit_id.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow {

/// Kernels that keep state in themselves, by device, op and node: shared by all plans of a session.
///
/// They are kept as long as the session, which only grows with its graph: what a node has counted or drawn goes on in
/// every later step that runs it, whether or not the steps it ran in before are still compiled. Nodes are never removed
/// from a graph, so there is none that no step can reach any more.
///
/// Thread safety: safe.
class KeptKernels {
 public:
  std::shared_ptr<AnyKernel> find(std::string_view device, std::string_view node) const;
  /// The kernel kept for that node: `kernel`, or what another thread was quicker to put there.
  std::shared_ptr<AnyKernel> keep(std::string_view device, std::string_view node, std::shared_ptr<AnyKernel> kernel);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  /// By `node`: the names of its op and its own.
  using OfDevice = std::unordered_map<std::string, std::shared_ptr<AnyKernel>, Hash, std::equal_to<>>;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, OfDevice, Hash, std::equal_to<>> devices_;
};

class Plan;

namespace detail {

class CalledPlan;

/// The bodies that the nodes of a plan call, and those of their bodies.
struct CalledPlans {
  /// And by `PlanOptions::holds_feeds_from`.
  std::map<std::pair<const StepGraph*, std::size_t>, std::shared_ptr<CalledPlan>> by_body;
  std::unordered_map<std::int32_t, CalledPlan*> around;  ///< by `StepGraph::recursion`
};

}  // namespace detail

/// How a plan is made.
///
/// Thread safety: a value type.
struct PlanOptions {
  const KernelTables* kernels = nullptr;  ///< the device's
  const DeviceContext* device = nullptr;
  /// Keeps the device, and with it the memory of constants, alive as long as the plan.
  std::shared_ptr<const void> device_owner = nullptr;
  KeptKernels* kept = nullptr;
  /// Copies of constants in the device's memory that other plans may have or want; null where nobody does.
  DeviceConstants* constants = nullptr;
  InterOp inter_op = InterOp::automatic;
  /// That run the step's units; 0: those of the device's pool.
  int num_threads = 0;
  /// Kernels write into inputs that nobody else reads any more.
  bool reuse_buffers = true;
  /// Nodes that do not depend on one another run as one where the device has a kernel for that (`JointKernel`).
  bool joins_nodes = true;
  /// Feeds may come while the step runs, and fetches leave it as soon as they are made.
  bool streams = false;
  /// Feeds from this one on stay what they are for run after run: no kernel writes into them or lets go of them.
  std::size_t holds_feeds_from = std::numeric_limits<std::size_t>::max();
  /// Called now and then while a plan is made; throws to give up (a deadline).
  FunctionRef<void()>* check = nullptr;
  /// End waiting for constants to be copied to the device, the only thing that is waited for: with DeadlineExceeded,
  /// Cancelled.
  Clock* clock = nullptr;
  /// The bodies that calls share. Null: `compile` finds them itself.
  detail::CalledPlans* called = nullptr;
  Clock::time_point deadline = Clock::never;
  std::stop_token stop = {};
};

/// The place of a node in the order in which a plan runs them.
using PlanNodeId = StrongIndex<struct PlanNodeTag>;

/// A graph on one device, compiled for running: nodes in dense arrays in a frozen order, edges as slot numbers, kernels
/// made, counts of pending inputs and of readers precomputed.
///
/// A unit is a stretch of synchronous nodes, or one asynchronous or expensive node (`runtime/plan/plan_units.hpp`): it
/// runs in one go in one thread, so edges inside it cost no counter.
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
    bool is_trusted = false;  ///< sets all its outputs
    double cost_ns = 0;
  };
  struct Unit {
    PlanNodeId node_begin{0};
    PlanNodeId node_end{0};
    std::int32_t consumer_begin = 0;  ///< into `unit_consumers`, asynchronous ones first
    std::int32_t consumer_end = 0;
    std::int32_t fetch_begin = 0;  ///< into `unit_fetches`, if the plan streams: fetches that it makes
    std::int32_t fetch_end = 0;
    std::int32_t pending = 0;   ///< units that must have finished before
    bool is_async = false;      ///< a single asynchronous node
    bool is_nested = false;     ///< one whose kernel `nests`
    bool is_expensive = false;  ///< worth waking another thread for
    bool is_brief = false;      ///< kernels of the library that are known to cost less than to wake another thread
    bool is_feed = false;       ///< without nodes; finished by a late feed
  };
  /// Nodes of one unit whose work the device records.
  struct RecordedNodes {
    PlanNodeId node_begin{0};
    PlanNodeId node_end{0};
    std::unique_ptr<WorkRecorder::Record> record;
  };

  /// Blocks while constants are copied to a device with memory of its own; a worker of the device's pool goes on
  /// working. Errors: NotFound if an op has no kernel for the device or its element types; InvalidArgument if a
  /// placeholder is not fed, if the graph's nodes do not stand in a topological order, or if an op is not the table's
  /// of that name; whatever making a kernel or copying a constant throws, with the node added; DeadlineExceeded and
  /// Cancelled as the options say.
  static std::shared_ptr<const Plan> compile(StepGraph graph, const PlanOptions& options);

  const IndexedVector<PlanNodeId, PlanNode>& nodes() const noexcept { return nodes_; }
  const IndexedVector<UnitId, Unit>& units() const noexcept { return units_; }
  /// Units without producers, asynchronous ones first; feeds are not among them.
  std::span<const UnitId> first_units() const noexcept { return first_units_; }
  std::span<const UnitId> unit_consumers() const noexcept { return unit_consumers_; }
  std::span<const SlotId> released() const noexcept { return released_; }
  std::span<const SlotId> shared_reads() const noexcept { return shared_reads_; }
  const IndexedVector<SlotId, std::int32_t>& shared_read_counts() const noexcept { return shared_read_counts_; }
  std::span<const std::pair<SlotId, AnyTensor>> constants() const noexcept { return constants_; }
  std::span<const SlotId> feed_slots() const noexcept { return feed_slots_; }
  std::span<const SlotId> fetch_slots() const noexcept { return fetch_slots_; }
  /// The tensor of fetch `i` is in nobody's way: not a constant, and not fetched again under a later number. If the
  /// plan streams, also not read by any node, nor fetched under another number.
  bool may_take_fetch(std::size_t i) const noexcept { return may_take_fetch_[i]; }
  /// See `PlanOptions`.
  std::size_t holds_feeds_from() const noexcept { return holds_feeds_from_; }
  /// Slots of feeds that stay.
  std::span<const SlotId> held_slots() const noexcept { return held_slots_; }
  /// Other slots that still hold a tensor after a run: what was fed and fetched, but for constants.
  std::span<const SlotId> cleared_slots() const noexcept { return cleared_slots_; }
  std::size_t num_slots() const noexcept { return num_slots_; }
  /// In the order of their nodes; none of a plan that streams.
  std::span<const RecordedNodes> recorded() const noexcept { return recorded_; }
  /// All nodes are synchronous and run in order in the calling thread.
  bool is_sequential() const noexcept { return is_sequential_; }
  /// Some kernel may give a dead tensor.
  bool carries_dead() const noexcept { return carries_dead_; }
  /// A kernel of it does.
  bool nests() const noexcept { return nests_; }
  bool streams() const noexcept { return streams_; }
  /// If the plan streams: the unit of each feed, and of each fetch (none: it is there from the beginning).
  std::span<const UnitId> feed_units() const noexcept { return feed_units_; }
  std::span<const UnitId> fetch_units() const noexcept { return fetch_units_; }
  std::span<const std::size_t> unit_fetches() const noexcept { return unit_fetches_; }
  const DeviceContext& device() const noexcept { return *device_; }
  const StepGraph& graph() const noexcept { return graph_; }

 private:
  friend class PlanCompiler;
  Plan() = default;

  std::shared_ptr<const void> device_owner_;  // first, so destroyed last
  StepGraph graph_;
  const DeviceContext* device_ = nullptr;
  std::vector<std::unique_ptr<AnyKernel>> kernels_;
  std::vector<std::shared_ptr<AnyKernel>> kept_kernels_;  ///< of a KeptKernels too
  std::deque<Node> joint_nodes_;                          ///< what stands for nodes that run as one
  IndexedVector<PlanNodeId, PlanNode> nodes_;
  IndexedVector<UnitId, Unit> units_;
  std::vector<UnitId> unit_consumers_;
  std::vector<SlotId> input_slots_;
  std::vector<std::uint8_t> host_outputs_;  ///< of the nodes that have any: not 0 where an output is in host memory
  std::vector<SlotId> released_;
  std::vector<SlotId> shared_reads_;
  IndexedVector<SlotId, std::int32_t> shared_read_counts_;  ///< 0 where one unit does all the reading
  std::vector<std::pair<SlotId, AnyTensor>> constants_;
  std::vector<DeviceConstants::Ref> shared_constants_;  ///< those of them that other plans may use
  std::vector<SlotId> feed_slots_;
  std::vector<SlotId> fetch_slots_;
  std::vector<bool> may_take_fetch_;
  std::vector<SlotId> cleared_slots_;
  std::vector<SlotId> held_slots_;
  std::size_t holds_feeds_from_ = std::numeric_limits<std::size_t>::max();
  std::size_t num_slots_ = 0;
  std::vector<UnitId> first_units_;
  std::vector<UnitId> feed_units_;
  std::vector<UnitId> fetch_units_;
  std::vector<std::size_t> unit_fetches_;
  std::vector<RecordedNodes> recorded_;
  bool is_sequential_ = true;
  bool carries_dead_ = false;
  bool nests_ = false;
  bool streams_ = false;
};

}  // namespace dflow
