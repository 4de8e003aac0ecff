#pragma once

#include <dflow/core/cancellation.hpp>
#include <dflow/graph/frame_layout.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/runtime/plan/plan_constants.hpp>

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow {
struct PlanOptions;
}  // namespace dflow

namespace dflow::detail {

/// A part of a graph that passes tensors on alive or dead, compiled for the loop that runs it. Each frame has its own
/// slots and counters, and each iteration of the frame has a copy of them.
///
/// Thread safety: immutable after `compile`.
class FramePlan {
 public:
  using Index = std::int32_t;
  static constexpr Index kept = std::numeric_limits<Index>::max();  ///< reads of a slot that is never let go
  static constexpr bool is_kept(Index reads) noexcept { return reads > kept / 2; }

  /// The node and input that wait for a node's output, or for its end (output -1).
  struct Edge {
    Index output = -1;
    Index node = 0;
    Index input = -1;  ///< -1: by a control edge
  };
  struct PlannedNode {
    const Node* node = nullptr;
    OpRole role = OpRole::ordinary;
    const AnyKernel* kernel = nullptr;  ///< null for a node that the loop runs itself
    KernelContext::Wiring wiring;       ///< inputs in the frame it runs in, outputs in the one it gives to
    Index frame = 0;
    Index gives_to = 0;
    Index number = 0;               ///< in its frame
    Index pending = 0;              ///< inputs that change, and control inputs; of a Merge only these
    Index num_data = 0;             ///< of a Merge: inputs in the first iteration
    Index merge = -1;               ///< of a NextIteration: the Merge it leads to
    Index place = -1;               ///< of a NextIteration: among the inputs of that
    bool has_next = false;          ///< a Merge that NextIterations lead to
    bool is_constant = false;       ///< an Enter
    bool is_late_constant = false;  ///< a constant that waits for something
    bool is_trusted = true;
    bool may_forward = false;   ///< a kernel may write into inputs that nobody reads after it
    bool is_expensive = false;  ///< worth another thread
    Index edge_begin = 0;
    Index edge_end = 0;
  };
  struct Frame {
    std::string name;
    Index num_enters = 0;
    std::int64_t parallel_iterations = 1;
    Index num_slots = 0;
    std::vector<Index> pending;  ///< of its nodes, by their numbers
    std::vector<Index> reads;    ///< of its slots; constants and fetches are never let go
    std::vector<std::pair<SlotId, AnyTensor>> constants;
    std::vector<SlotId> late;                     ///< of constants that wait for something
    std::vector<std::pair<Index, Index>> merges;  ///< that have an input from the beginning, and its number
  };

  static std::shared_ptr<const FramePlan> compile(const StepGraph& body, const PlanOptions& options);

  std::span<const PlannedNode> nodes() const noexcept { return nodes_; }
  const PlannedNode& node(Index i) const noexcept { return nodes_[static_cast<std::size_t>(i)]; }
  std::span<const Frame> frames() const noexcept { return frames_; }
  const Frame& frame(Index i) const noexcept { return frames_[static_cast<std::size_t>(i)]; }
  std::span<const Edge> edges_of(const PlannedNode& node) const noexcept {
    return std::span(edges_).subspan(static_cast<std::size_t>(node.edge_begin),
                                     static_cast<std::size_t>(node.edge_end - node.edge_begin));
  }
  /// Slots of the outermost frame.
  std::span<const SlotId> feeds() const noexcept { return feeds_; }
  std::span<const SlotId> fetches() const noexcept { return fetches_; }
  /// Nodes that wait for nothing.
  std::span<const Index> first_nodes() const noexcept { return first_; }
  const DeviceContext& device() const noexcept { return *device_; }
  int num_threads() const noexcept { return num_threads_; }

 private:
  friend class FramePlanCompiler;
  FramePlan() = default;

  std::shared_ptr<const void> device_owner_;  // first, so destroyed last
  StepGraph body_;
  const DeviceContext* device_ = nullptr;
  int num_threads_ = 1;
  std::vector<std::unique_ptr<AnyKernel>> kernels_;
  std::vector<std::shared_ptr<AnyKernel>> kept_kernels_;
  std::vector<DeviceConstants::Ref> shared_constants_;
  std::vector<PlannedNode> nodes_;
  std::vector<Frame> frames_;
  std::vector<Edge> edges_;
  std::vector<SlotId> input_slots_;
  std::vector<std::uint8_t> host_outputs_;
  std::vector<SlotId> feeds_;
  std::vector<SlotId> fetches_;
  std::vector<Index> first_;
};

class FrameRun;

/// One iteration of a frame: its tensors, and the number of inputs that its nodes still wait for.
///
/// Thread safety: guarded by the run, except for the slots of nodes that are running.
struct FrameIteration {
  using Index = FramePlan::Index;

  FrameRun* run = nullptr;
  std::int64_t number = 0;
  IndexedVector<SlotId, AnyTensor> slots;
  DeadTensors dead;
  std::vector<Index> pending;                        ///< by node
  std::vector<Index> num_dead;                       ///< by node: inputs
  std::vector<std::uint8_t> is_taken;                ///< by node: a Merge that has its value
  std::vector<Index> reads;                          ///< by slot: reads to come
  std::map<Index, std::unique_ptr<FrameRun>> inner;  ///< frames under way
  Index num_ready = 0;                               ///< nodes that are ready or run
  std::string frame;                                 ///< for messages to other devices
  StepContext context;
};

/// One run of a frame.
class FrameRun {
 public:
  using Index = FramePlan::Index;

  FrameRun(Index of, FrameRun* outer_run, FrameIteration* outer_iteration)
      : frame(of), outer(outer_run), within(outer_iteration) {}

  const Index frame;
  FrameRun* const outer;
  FrameIteration* const within;
  std::deque<std::unique_ptr<FrameIteration>> iterations;  ///< under way, the oldest first
  std::vector<std::unique_ptr<FrameIteration>> idle;       ///< ended ones, whose memory is used again
  std::int64_t newest = -1;
  Index pending_enters = 0;
  /// A value that every iteration is given: a constant Enter.
  struct Invariant {
    Index node = 0;
    AnyTensor value;
    bool is_dead = false;
  };
  std::vector<Invariant> invariants;
  /// A value that waits for an iteration to end, since the most iterations allowed are under way.
  struct Next {
    Index node = 0;
    AnyTensor value;
  };
  std::vector<Next> waiting;
  std::vector<Index> dead_exits;  ///< of the newest iteration
  std::vector<Index> alive_exits;
};

/// One run of a FramePlan, from its inputs to its outputs.
///
/// Thread safety: `start` is called once; it keeps itself alive until it has ended.
class FrameLoop : public std::enable_shared_from_this<FrameLoop> {
 public:
  using Index = FramePlan::Index;

  FrameLoop(std::shared_ptr<const FramePlan> plan, KernelContext& context, Completion done);
  ~FrameLoop();

  void start();

 private:
  struct Ready {
    FrameIteration* iteration = nullptr;
    Index node = 0;
    bool is_dead = false;
  };

  struct AsyncRun;

  void drain();
  void help();
  void end(std::unique_lock<std::mutex>& lock);
  /// The kernel's inputs and outputs; it may write into inputs that all others have read. With the mutex.
  KernelContext::Wiring wiring_of(const Ready& ready) const;
  Status run_kernel(const Ready& ready, const KernelContext::Wiring& wiring);
  void start_async(const Ready& ready, const KernelContext::Wiring& wiring);
  void end_async(const Ready& ready, KernelContext& context, std::int64_t start, Status status);
  void check_outputs(const FramePlan::PlannedNode& node, KernelContext& context, const FrameIteration& iteration) const;
  Status error_at(Index node, const Status& status) const;

  // With the mutex held.
  FrameIteration& begin_iteration(FrameRun& run);
  void end_iterations(FrameRun& run);
  void end_run(FrameRun& run);
  void finish(const Ready& ready);
  void pass_switch(const Ready& ready);
  void pass_enter(const Ready& ready);
  void pass_exit(const Ready& ready);
  void pass_next(const Ready& ready);
  void give_next(FrameIteration& to, Index node, AnyTensor value);
  /// Tells the nodes that wait for this node, in the iteration that it gives its outputs to.
  void tell(FrameIteration& to, Index node, bool is_dead);
  void deliver(FrameIteration& to, const FramePlan::Edge& edge, bool is_dead);
  void take_merged(FrameIteration& to, Index merge, Index number, AnyTensor value);
  void make_ready(FrameIteration& to, Index node, bool is_dead);
  /// Returns the tensor in a slot for its next reader; moved if the reader is the last one.
  AnyTensor take(FrameIteration& from, SlotId slot);
  void has_read(FrameIteration& iteration, SlotId slot);
  void let_go(FrameIteration& iteration, SlotId slot);
  void let_go(AnyTensor& tensor);
  void let_go_of_all(FrameRun& run);
  void fail(const Status& status);
  void cancel_rest(std::unique_lock<std::mutex>& lock);
  void give_outputs();

  const std::shared_ptr<const FramePlan> plan_;
  KernelContext& context_;
  Completion done_;
  CancellationSource cancellation_;
  std::mutex mutex_;
  std::deque<Ready> ready_;
  int num_expensive_ = 0;  ///< of `ready_`
  int num_running_ = 0;    ///< nodes
  int num_threads_ = 0;    ///< that run nodes, or are about to
  bool is_done_ = false;
  Status status_;
  bool must_cancel_ = false;
  std::unique_ptr<FrameRun> whole_;
};

}  // namespace dflow::detail
