#pragma once

#include <dflow/core/rendezvous.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/runtime/local_rendezvous.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow::net {

namespace detail {
/// "/job:ps/replica:0/task:1" of "/job:ps/replica:0/task:1/device:CPU:0".
std::string_view task_of(std::string_view device) noexcept;
}  // namespace detail

/// Asks other tasks for the tensors of steps.
///
/// Thread safety: safe.
class TensorSource {
 public:
  TensorSource() = default;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;
  virtual ~TensorSource();

  /// `done` is called once, from any thread, with a tensor in host memory of `args.allocator`. `key.source_device()` is
  /// one of `task`. Errors: what the task says; Unavailable if it cannot be reached; InvalidArgument if the tensor is
  /// not what `args` expect; `cancellation`'s.
  virtual void receive(const std::string& task, std::uint64_t step, const RendezvousKey& key, const RecvArgs& args,
                       CancellationToken cancellation, Rendezvous::RecvDone done) = 0;
  /// Sends a tensor in host memory to `task`, which waits for it or will. `failed` is called, from any thread, if it
  /// cannot be reached.
  virtual void push(const std::string& task, std::uint64_t step, const RendezvousKey& key, const AnyTensor& tensor,
                    bool is_dead, UniqueFunction<void(Status)> failed) = 0;
};

/// What a thread pushes to one task in one step, from here to the end of its scope, so that it goes with a message to
/// that task rather than in ones of its own.
///
/// Thread safety: of the thread that made it. Of several the one that was made last gathers.
class GatheredPushes {
 public:
  /// With more bytes they are not gathered.
  static constexpr std::size_t max_bytes = std::size_t{64} << 10;

  /// `task` must outlive it.
  GatheredPushes(std::uint64_t step, std::string_view task) noexcept;
  GatheredPushes(const GatheredPushes&) = delete;
  GatheredPushes& operator=(const GatheredPushes&) = delete;
  ~GatheredPushes();

  /// Of the calling thread, for that step and task; null if it gathers none.
  static GatheredPushes* find(std::uint64_t step, std::string_view task) noexcept;

  /// False, and nothing is done, if it does not fit. Errors: InvalidArgument for what cannot leave its task.
  bool add(const RendezvousKey& key, const AnyTensor& tensor, bool is_dead);
  /// All that have been added since the last call.
  std::vector<PushedTensor> take() noexcept { return std::exchange(tensors_, {}); }

 private:
  static GatheredPushes*& latest() noexcept;

  const std::uint64_t step_;
  const std::string_view task_;
  GatheredPushes* const before_;
  std::size_t bytes_ = 0;
  std::vector<PushedTensor> tensors_;
};

/// Where the Sends and Recvs of one step meet as far as they are in this task: what is sent waits here until it is
/// asked for, from here or by the task that wants it; what is wanted from another task is asked for there.
///
/// Thread safety: safe.
class StepRendezvous final : public Rendezvous, public std::enable_shared_from_this<StepRendezvous> {
 public:
  /// `task` is this one, "/job:ps/replica:0/task:1".
  StepRendezvous(std::uint64_t step, std::shared_ptr<const std::string> task, std::shared_ptr<TensorSource> source)
      : step_(step), task_(std::move(task)), source_(std::move(source)) {}

  Status send(const RendezvousKey& key, AnyTensor tensor, bool is_dead, const SendArgs& args = {}) override;
  using Rendezvous::recv_async;
  void recv_async(const RendezvousKey& key, const RecvArgs& args, RecvDone done) override;
  void abort(Status status) override;

  /// For another task that asks: what a Send of this one hands over, in host memory.
  void serve(const RendezvousKey& key, CancellationToken cancellation, RecvDone done);
  /// For another task that sends unasked.
  Status take(const RendezvousKey& key, AnyTensor tensor, bool is_dead) {
    return local_.send(key, std::move(tensor), is_dead);
  }
  /// Sends what has been gathered in vain.
  void push_on(PushedTensor pushed);
  /// Tensors that nobody has asked for yet, and receives that wait.
  std::size_t num_pending() const { return local_.num_pending(); }
  /// Why it was aborted; ok if it was not.
  Status end() const { return local_.end(); }
  /// What is waited for in this task, here or by the task that it was asked for by.
  std::vector<RendezvousKey> wanted(std::size_t max) const { return local_.wanted(max); }
  std::size_t num_wanted() const { return local_.num_wanted(); }

 private:
  void push(const RendezvousKey& key, const AnyTensor& tensor, bool is_dead);

  const std::uint64_t step_;
  const std::shared_ptr<const std::string> task_;
  const std::shared_ptr<TensorSource> source_;
  LocalRendezvous local_;
  CancellationSource ending_;  ///< gives up what was asked for in other tasks
};

/// The steps that this task takes part in, or is asked for tensors of before it has heard that it does. One is
/// forgotten when none of its parts runs here any more and all that was sent has been received. Of one that has ended
/// by an error the number and the error are remembered: what comes late for it is answered with that, and none of its
/// parts begins any more.
///
/// Thread safety: safe. Holds no lock while it calls.
class StepTable : public std::enable_shared_from_this<StepTable> {
 public:
  struct Options {
    std::string task;
    std::shared_ptr<TensorSource> source;
    /// Steps that others have spoken of and that have not begun here; the oldest beyond that are ended.
    std::size_t max_awaited = 16384;
    /// Bytes that one sender's tensors take, with what it takes to keep them, for steps that have not begun here; the
    /// oldest of these steps beyond that are ended.
    std::uint64_t max_early_bytes = std::uint64_t{64} << 20;
    /// Steps that have ended by an error; the oldest beyond that are forgotten.
    std::size_t max_ended = 65536;
  };

  explicit StepTable(Options options)
      : options_(std::move(options)), task_(std::make_shared<const std::string>(options_.task)) {}

  /// A part of the step, or its client, is here until the result is let go of. `owner` names who began it.
  std::shared_ptr<StepRendezvous> begin(std::uint64_t step, const std::string& owner);
  /// For another task that asks. Errors, given to `done`: also that which the step has ended by.
  void serve(std::uint64_t step, const RendezvousKey& key, CancellationToken cancellation, Rendezvous::RecvDone done);
  /// For another task, `owner`, that sends unasked. What it says of a step that has not begun here is kept; of too many
  /// such steps the oldest are ended (ResourceExhausted). Errors: Aborted for what was sent before; that which the step
  /// has ended by.
  Status take(std::uint64_t step, const std::string& owner, const RendezvousKey& key, AnyTensor tensor, bool is_dead);
  /// Ends the step, also if it begins only then: what waits is told, and what was sent is let go.
  void cancel(std::uint64_t step, const Status& why);
  /// Cancels the steps that wait for a tensor of that start of a task, which may have been lost, of those whose entry
  /// had been made when `next_entry` was `before`.
  void cancel_waits_for(const std::string& task, std::uint64_t incarnation, std::uint64_t before, const Status& why);
  /// The number of the next entry, which grows with each step that this table comes to know.
  std::shared_ptr<const std::atomic<std::uint64_t>> next_entry() const { return next_number_; }
  /// Cancels all steps that `owner` began: it is gone.
  void cancel_all_of(const std::string& owner, const Status& why);
  void cancel_all(const Status& why);
  std::size_t size() const;

  /// A tensor of a step that is waited for.
  struct Wait {
    std::uint64_t step = 0;
    RendezvousKey key;
  };
  /// At most `max` of them, in no order.
  std::vector<Wait> waits(std::size_t max) const;
  std::size_t num_waits() const;

 private:
  /// What a sender has sent to steps that have not begun here. It is there as long as there is any.
  struct EarlySender {
    struct Sent {
      std::uint64_t step = 0;
      std::uint64_t bytes = 0;
    };
    std::string name;
    std::uint64_t bytes = 0;             ///< of all
    std::map<std::uint64_t, Sent> sent;  ///< by the number of the step's entry: the oldest first
  };
  struct Entry {
    std::shared_ptr<StepRendezvous> rendezvous;
    std::uint64_t number = 0;  ///< of the table's entries
    std::string owner;
    int num_running = 0;
    int num_served = 0;  ///< requests that wait
    bool has_begun = false;
    std::vector<EarlySender*> early;  ///< of what came before it began
    bool is_over() const { return num_running == 0 && num_served == 0 && rendezvous->num_pending() == 0; }
  };

  struct Awaited {
    std::uint64_t step, number;
  };
  using Steps = std::map<std::uint64_t, Entry>;  ///< by numbers that others choose, so no hash table
  /// Of steps that were ended for the sake of others, to be aborted without the mutex.
  using Displaced = std::vector<std::shared_ptr<StepRendezvous>>;

  /// Of entries with a number below `before`.
  std::vector<Wait> waits(std::size_t max, std::uint64_t before) const;

  // With the mutex held.
  Entry& entry_of(std::uint64_t step, Displaced& displaced);
  /// The end if it has begun, or is over.
  Steps::iterator find_awaited(const Awaited& awaited);
  void limit_awaited(std::uint64_t newest, Displaced& displaced);
  Status ended_by(std::uint64_t step) const;
  void note_end(std::uint64_t step, const Status& why);
  void count_early(std::uint64_t step, Entry& entry, const std::string& sender, std::uint64_t bytes);
  void limit_early(const std::string& sender, Displaced& displaced);
  void forget_early(Entry& entry);
  /// One that has not begun.
  void displace(Steps::iterator step, Displaced& displaced);
  void drop_if_over(std::uint64_t step, std::shared_ptr<StepRendezvous>& dropped);

  static void abort(const Displaced& displaced);
  void end(std::uint64_t step) noexcept;
  void finish_serving(std::uint64_t step, std::uint64_t number);

  const Options options_;
  const std::shared_ptr<const std::string> task_;
  mutable std::mutex mutex_;
  Steps steps_;
  std::map<std::uint64_t, Status> ended_;     ///< by an error
  std::deque<std::uint64_t> ended_in_order_;  ///< oldest first
  std::size_t num_awaited_ = 0;
  const std::shared_ptr<std::atomic<std::uint64_t>> next_number_ = std::make_shared<std::atomic<std::uint64_t>>(1);
  std::deque<Awaited> awaited_;                         ///< oldest first; some have begun meanwhile, or are over
  std::unordered_map<std::string, EarlySender> early_;  ///< by sender
};

}  // namespace dflow::net
