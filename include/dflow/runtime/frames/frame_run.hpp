#pragma once

#include <dflow/core/cancellation.hpp>
#include <dflow/kernels/kernel.hpp>
#include <dflow/runtime/frames/frame_plan.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace dflow::detail {

class FrameRun;

/// One iteration of a frame: tensors, and what its nodes still wait for.
///
/// Thread safety: guarded by the run, but for the slots of nodes that are running.
struct FrameIteration {
  using Index = FramePlan::Index;

  FrameRun* run = nullptr;
  std::int64_t number = 0;
  IndexedVector<SlotId, AnyTensor> slots;
  DeadTensors dead;
  std::vector<Index> pending;                        ///< by node
  std::vector<Index> num_dead;                       ///< by node: inputs
  std::vector<std::uint8_t> is_taken;                ///< by node: a Merge that has its value
  std::vector<Index> reads;                          ///< by slot: those to come
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
  std::deque<std::unique_ptr<FrameIteration>> iterations;  ///< those under way, the oldest first
  std::vector<std::unique_ptr<FrameIteration>> idle;       ///< ended ones, whose memory is used again
  std::int64_t newest = -1;
  Index pending_enters = 0;
  /// What every iteration is given: constant Enters.
  struct Invariant {
    Index node = 0;
    AnyTensor value;
    bool is_dead = false;
  };
  std::vector<Invariant> invariants;
  /// What waits for an iteration to end, since as many as may be are under way.
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
  Status run_kernel(const Ready& ready);
  void start_async(const Ready& ready);
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
  /// Tells what waits for the node, in the iteration that it gives its outputs to.
  void tell(FrameIteration& to, Index node, bool is_dead);
  void deliver(FrameIteration& to, const FramePlan::Edge& edge, bool is_dead);
  void take_merged(FrameIteration& to, Index merge, Index number, AnyTensor value);
  void make_ready(FrameIteration& to, Index node, bool is_dead);
  /// What is in a slot, for its next reader: moved where that is the last one.
  AnyTensor take(FrameIteration& from, SlotId slot);
  void has_read(FrameIteration& iteration, SlotId slot);
  void let_go(FrameIteration& iteration, SlotId slot);
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

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/runtime/frames/frame_run.ipp>
#endif
