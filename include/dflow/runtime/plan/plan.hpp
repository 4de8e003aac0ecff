#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/runtime/inter_op.hpp>
#include <dflow/runtime/plan/plan_constants.hpp>
#include <dflow/runtime/plan/plan_data.hpp>

#include <cstdint>
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
/// They are kept as long as the session, and a session's graph only grows. A node's count or random stream goes on in
/// every later step that runs the node, whether or not its earlier steps are still compiled. Nodes are never removed
/// from a graph, so every node stays within reach of a step.
///
/// Thread safety: safe.
class KeptKernels {
 public:
  std::shared_ptr<AnyKernel> find(std::string_view device, std::string_view node) const;
  /// The kernel kept for the node: `kernel`, or the kernel that another thread put there first.
  std::shared_ptr<AnyKernel> keep(std::string_view device, std::string_view node, std::shared_ptr<AnyKernel> kernel);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  /// The key is `node`: the names of its op and its own.
  using OfDevice = std::unordered_map<std::string, std::shared_ptr<AnyKernel>, Hash, std::equal_to<>>;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, OfDevice, Hash, std::equal_to<>> devices_;
};

class Plan;

namespace detail {

class CalledPlan;

/// The bodies that the nodes of a plan call, and the bodies called in them.
struct CalledPlans {
  /// By body and by `PlanOptions::holds_feeds_from`.
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
  /// Number of threads that run the step's units; 0: the threads of the device's pool.
  int num_threads = 0;
  /// Kernels write into inputs that nobody else reads any more.
  bool reuse_buffers = true;
  /// Nodes that do not depend on one another run as one where the device has a kernel for that (`JointKernel`).
  bool joins_nodes = true;
  /// Feeds may come while the step runs, and fetches leave it as soon as they are made.
  bool streams = false;
  /// Feeds from this position on keep their values in every run: no kernel writes into them or lets go of them.
  std::size_t holds_feeds_from = std::numeric_limits<std::size_t>::max();
  /// Called now and then while a plan is made; throws to give up (a deadline).
  FunctionRef<void()>* check = nullptr;
  /// End waiting for constants to be copied to the device: with DeadlineExceeded, Cancelled. `compile` waits for
  /// nothing else.
  Clock* clock = nullptr;
  /// The bodies that calls share. Null: `compile` finds them itself.
  detail::CalledPlans* called = nullptr;
  Clock::time_point deadline = Clock::never;
  std::stop_token stop = {};
};

/// A graph on one device, compiled for running: nodes in dense arrays in a frozen order, edges as slot numbers, kernels
/// made, counts of pending inputs and of readers precomputed.
///
/// A unit is a stretch of synchronous nodes, or one asynchronous or expensive node (`runtime/plan/plan_units.hpp`): it
/// runs in one go in one thread, so edges inside it cost no counter.
///
/// Thread safety: immutable after `compile`; any number of steps may run it at once.
class Plan {
 public:
  using PlanNode = detail::PlanNode;
  using Unit = detail::PlanUnit;
  using RecordedNodes = detail::RecordedNodes;

  /// Blocks while constants are copied to a device with memory of its own; a worker of the device's pool goes on
  /// working. Errors: NotFound if an op has no kernel for the device or its element types; InvalidArgument if a
  /// placeholder is not fed, if the graph's nodes do not stand in a topological order, or if an op is not the table's
  /// op of that name; DeadlineExceeded and Cancelled as the options say. An error from making a kernel or copying a
  /// constant is thrown on, with the node added.
  static std::shared_ptr<const Plan> compile(StepGraph graph, const PlanOptions& options);

  const IndexedVector<PlanNodeId, PlanNode>& nodes() const noexcept { return data_.nodes; }
  const IndexedVector<UnitId, Unit>& units() const noexcept { return data_.units; }
  /// Units without producers, asynchronous ones first; feeds are not among them.
  std::span<const UnitId> first_units() const noexcept { return data_.first_units; }
  std::span<const UnitId> unit_consumers() const noexcept { return data_.unit_consumers; }
  std::span<const SlotId> released() const noexcept { return data_.released; }
  std::span<const SlotId> shared_reads() const noexcept { return data_.shared_reads; }
  const IndexedVector<SlotId, std::int32_t>& shared_read_counts() const noexcept { return data_.shared_read_counts; }
  std::span<const std::pair<SlotId, AnyTensor>> constants() const noexcept { return data_.constants; }
  std::span<const SlotId> feed_slots() const noexcept { return data_.feed_slots; }
  std::span<const SlotId> fetch_slots() const noexcept { return data_.fetch_slots; }
  /// Whether the tensor of fetch `i` may be moved out: it is not a constant, and not fetched again under a later
  /// number. If the plan streams, it is also not read by any node, nor fetched under another number.
  bool may_take_fetch(std::size_t i) const noexcept { return data_.may_take_fetch[i]; }
  /// See `PlanOptions`.
  std::size_t holds_feeds_from() const noexcept { return data_.holds_feeds_from; }
  /// Slots of feeds that stay.
  std::span<const SlotId> held_slots() const noexcept { return data_.held_slots; }
  /// Other slots that still hold a tensor after a run: tensors that were fed and fetched, except constants.
  std::span<const SlotId> cleared_slots() const noexcept { return data_.cleared_slots; }
  std::size_t num_slots() const noexcept { return data_.num_slots; }
  /// In the order of their nodes; none of a plan that streams.
  std::span<const RecordedNodes> recorded() const noexcept { return data_.recorded; }
  /// All nodes are synchronous and run in order in the calling thread.
  bool is_sequential() const noexcept { return data_.is_sequential; }
  /// Some kernel may give a dead tensor.
  bool carries_dead() const noexcept { return data_.carries_dead; }
  /// Whether a kernel of the plan nests.
  bool nests() const noexcept { return data_.nests; }
  bool streams() const noexcept { return data_.streams; }
  /// If the plan streams: the unit of each feed, and of each fetch (none: it is there from the beginning).
  std::span<const UnitId> feed_units() const noexcept { return data_.feed_units; }
  std::span<const UnitId> fetch_units() const noexcept { return data_.fetch_units; }
  std::span<const std::size_t> unit_fetches() const noexcept { return data_.unit_fetches; }
  const DeviceContext& device() const noexcept { return *data_.device; }
  const StepGraph& graph() const noexcept { return data_.graph; }

 private:
  Plan() = default;

  detail::PlanData data_;
};

}  // namespace dflow
