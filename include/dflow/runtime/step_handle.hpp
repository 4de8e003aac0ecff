#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/core/rendezvous.hpp>
#include <dflow/runtime/device.hpp>
#include <dflow/runtime/stats_collector.hpp>
#include <dflow/runtime/step.hpp>

#include <atomic>
#include <concepts>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

namespace dflow {

class StepHandle;

/// One part of a step behind one interface: a plan on a device of this process, or a partition in another task.
///
/// Thread safety: `start` is called once; `cancel` may be called from any thread, before, during and after it.
class StepPart {
 public:
  using Done = UniqueFunction<void(Status)>;

  StepPart() = default;
  StepPart(const StepPart&) = delete;
  StepPart& operator=(const StepPart&) = delete;
  virtual ~StepPart();

  /// Begins and returns. `done` is called once, from any thread, when nothing of the part runs any more. `step` lives
  /// as long as `done` does; it lets go of its parts when it has ended. An exception ends the part.
  virtual void start(StepHandle& step, Done done) = 0;
  /// Asks the part to end soon. Never blocks.
  virtual void cancel(const Status& status) = 0;
  /// True if the part may stay silent after `cancel` (its task may be lost): the step then ends without it.
  virtual bool may_stay_silent() const noexcept { return false; }
  /// The device or task where it runs, for messages.
  virtual std::string_view place() const noexcept { return {}; }
};

/// One call of a compiled step. It carries the id, rendezvous, cancellation, deadline and statistics of the run,
/// starts its parts and ends exactly once, with a status.
///
/// - The first error, in time and over all parts, cancels the rest and is the one reported.
/// - `cancel`, the deadline and the stop token end the step with their status; parts that may stay silent are not
///   waited for.
/// - Until it has ended, a step keeps itself alive, so the caller that started it may let go of it.
/// - A step may be part of an outer step (a call, a branch, an iteration). It ends when the outer step is cancelled.
///   Cancelling the inner step leaves the outer step as it is.
///
/// Use: set options, add parts and client edges, then `start`, or `run` in the thread that waits. Client edges may
/// also come while it runs, as long as something (a part, a Hold) keeps it from ending.
///
/// Thread safety: before `start` one thread; then client edges, and `cancel` at any time, from any thread.
class StepHandle : public std::enable_shared_from_this<StepHandle> {
 public:
  using Done = UniqueFunction<void(const Status&)>;

  struct Options {
    std::uint64_t id = 0;
    /// The step that this one is part of: it lends its rendezvous, cancellation and statistics.
    std::shared_ptr<StepHandle> outer = nullptr;
    /// Null: the rendezvous of the outer step, or one of the step's own, for parts of this process. Aborted with the
    /// step, unless there is an outer one.
    std::shared_ptr<Rendezvous> rendezvous = nullptr;
    /// Needed for a deadline and statistics.
    std::shared_ptr<Clock> clock = nullptr;
    Clock::time_point deadline = Clock::never;
    std::stop_token stop = {};
    bool trace = false;
    /// Allocates received tensors that come from other memories.
    Allocator* host_allocator = nullptr;
  };

  explicit StepHandle(Options options);
  ~StepHandle();

  std::uint64_t id() const noexcept { return options_.id; }
  Clock::time_point deadline() const noexcept { return options_.deadline; }
  Rendezvous& rendezvous() noexcept { return *rendezvous_; }
  CancellationToken cancellation() const { return cancellation_.token(); }
  /// The same if it must end receives because the rendezvous is not aborted; else without a source.
  CancellationToken receive_cancellation() const {
    return options_.outer == nullptr ? CancellationToken() : cancellation();
  }
  /// Null if the step is not traced.
  StatsCollector* stats() noexcept {
    return stats_ ? &*stats_ : options_.outer == nullptr ? nullptr : options_.outer->stats();
  }

  void add_part(std::shared_ptr<StepPart> part) { parts_.push_back(std::move(part)); }
  /// The tensor is sent as soon as the step starts, or at once. A step that has ended takes no more tensors.
  void send_from_client(ClientEdge edge, AnyTensor tensor);
  /// `received` gets the tensor before the step ends, from any thread; it must not throw. A tensor with another
  /// element type than `edge` has is an error. A dead tensor ends the step with the status of `dead`, which may be
  /// null.
  void receive_at_client(ClientEdge edge, UniqueFunction<void(AnyTensor)> received,
                         UniqueFunction<Status()> dead = nullptr);

  /// Starts all parts and returns; `done` is called once, from any thread, when the step has ended.
  void start(Done done);
  /// Starts all parts and runs their units in the calling thread until the step has ended.
  Status run(UnitQueue& queue);

  /// The first status counts. An ok status counts as cancelled.
  void cancel(Status status);
  /// The same for callers that may not throw, with the status that `why` makes, or ResourceExhausted if there is no
  /// memory to make it.
  template <std::invocable<> Why>
  void cancel_for(const Why& why) noexcept {
    Status status;
    try {
      status = why();
    } catch (...) {
      status = status_of_current_exception();
    }
    cancel(std::move(status));
  }

  /// While it holds, the step does not end. It is for actions on its parts from outside (a late feed).
  class [[nodiscard]] Hold {
   public:
    explicit Hold(StepHandle& step) : step_(step.enter() ? step.shared_from_this() : nullptr) {}
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() {
      if (step_ != nullptr) step_->leave();
    }
    /// False if the step has ended already.
    explicit operator bool() const noexcept { return step_ != nullptr; }

   private:
    std::shared_ptr<StepHandle> step_;
  };

 private:
  struct Send {
    ClientEdge edge;
    AnyTensor tensor;
  };
  struct Receive {
    ClientEdge edge;
    UniqueFunction<void(AnyTensor)> received;
    UniqueFunction<Status()> dead;
  };

  void arm();
  std::string lateness();
  void disarm();
  void begin();
  void send(Send& send);
  /// Precondition: counted in `outstanding_` already.
  void receive(Receive& receive);
  void finish_part(std::size_t part, const Status& status);
  bool enter() noexcept;
  void leave();

  Options options_;
  std::shared_ptr<Rendezvous> rendezvous_;
  CancellationSource cancellation_;
  std::optional<StatsCollector> stats_;
  std::vector<std::shared_ptr<StepPart>> parts_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
  std::unique_ptr<std::atomic<bool>[]> part_ended_;
  std::optional<TimerId> timer_;
  std::optional<std::stop_callback<std::function<void()>>> stop_;
  CancellationRegistration outer_;
  std::mutex mutex_;  ///< guards the next two members, and edges until the step has begun
  bool has_begun_ = false;
  Status error_;
  /// Parts, receives and holds that the step waits for; the step has ended when there are none.
  std::atomic<std::int64_t> outstanding_{0};
  Done done_;
};

/// A plan on a device of this process.
class LocalPart final : public StepPart {
 public:
  /// `within`: the device's state of the outer step, if there is one. The work that this part issues is then done when
  /// the outer part's work is done.
  LocalPart(Device& device, std::shared_ptr<Step> step, std::shared_ptr<UnitQueue> queue, DeviceStep* within = nullptr)
      : device_(device), step_(std::move(step)), queue_(std::move(queue)), within_(within) {}

  void start(StepHandle& handle, Done done) override;
  void cancel(const Status& status) override;
  std::string_view place() const noexcept override { return device_.name(); }
  Step& step() noexcept { return *step_; }
  DeviceStep* device_step() noexcept { return within_ != nullptr ? within_ : device_step_.get(); }

  /// Feeds a plan that streams; once for each feed, from any thread. A feed that comes before the part is started is
  /// kept until then. The caller holds the step.
  void feed_late(std::size_t i, AnyTensor tensor);

 private:
  struct Ending;
  struct LateFeed {
    std::size_t index = 0;
    AnyTensor tensor;
  };

  void end(const Status& status);
  void end_feeds();

  Device& device_;
  std::shared_ptr<Step> step_;
  std::shared_ptr<UnitQueue> queue_;
  DeviceStep* within_;
  std::mutex mutex_;  ///< guards the next three members
  bool has_started_ = false;
  bool is_cancelled_ = false;
  std::vector<LateFeed> early_;
  std::unique_ptr<DeviceStep> device_step_;
  std::shared_ptr<Ending> ending_;
};

}  // namespace dflow
