#pragma once

#include <dflow/core/rendezvous.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/runtime/local_rendezvous.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
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
/// The task of a device: "/job:ps/replica:0/task:1" of "/job:ps/replica:0/task:1/device:CPU:0".
std::string_view task_of(std::string_view device) noexcept;
/// The bytes that a tensor takes while it waits for its step, with its key.
std::uint64_t waiting_bytes(const RendezvousKey& key, const AnyTensor& tensor);
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

  /// `done` is called once, from any thread, with a tensor in host memory of `args.allocator`. `key.source_device()`
  /// is a device of `task`. Errors: the error that the task replies; Unavailable if the task cannot be reached;
  /// InvalidArgument if the tensor differs from the one that `args` expect; the error of `cancellation`.
  virtual void receive(const std::string& task, std::uint64_t step, const RendezvousKey& key, const RecvArgs& args,
                       CancellationToken cancellation, Rendezvous::RecvDone done) = 0;
  /// Sends a tensor in host memory to `task`, which waits for the tensor or will wait for it. `failed` is called,
  /// from any thread, if the task cannot be reached. Nothing is sent if `is_wanted` says false when it could be.
  virtual void push(const std::string& task, std::uint64_t step, const RendezvousKey& key, const AnyTensor& tensor,
                    bool is_dead, UniqueFunction<bool()> is_wanted, UniqueFunction<void(Status)> failed) = 0;
};

/// Gathers the tensors that a thread pushes to one task in one step, from here to the end of the scope. They travel
/// with a message to that task and not in messages of their own.
///
/// Thread safety: used only by the thread that made it. If a thread has made several, the newest one gathers.
class GatheredPushes {
 public:
  /// Tensors with more bytes are not gathered.
  static constexpr std::size_t max_bytes = std::size_t{64} << 10;

  /// `task` must outlive this object.
  GatheredPushes(std::uint64_t step, std::string_view task) noexcept;
  GatheredPushes(const GatheredPushes&) = delete;
  GatheredPushes& operator=(const GatheredPushes&) = delete;
  ~GatheredPushes();

  /// Finds the calling thread's object for this step and task; null if the thread gathers nothing for them.
  static GatheredPushes* find(std::uint64_t step, std::string_view task) noexcept;

  /// Returns false and does nothing if the tensor does not fit. Errors: InvalidArgument for a tensor that cannot
  /// leave its task.
  bool add(const RendezvousKey& key, const AnyTensor& tensor, bool is_dead);
  /// Returns all tensors that have been added since the last call.
  std::vector<PushedTensor> take() noexcept { return std::exchange(tensors_, {}); }

 private:
  static GatheredPushes*& latest() noexcept;

  const std::uint64_t step_;
  const std::string_view task_;
  GatheredPushes* const before_;
  std::size_t bytes_ = 0;
  std::vector<PushedTensor> tensors_;
};

/// The meeting point of one step's Sends and Recvs in this task. A sent tensor waits here until a Recv of this task
/// or another task asks for it. If a Recv wants a tensor of another task, this class asks that task for it.
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

  /// Serves another task that asks: hands over, in host memory, the tensor that a Send of this task sends.
  void serve(const RendezvousKey& key, CancellationToken cancellation, RecvDone done);
  /// Takes a tensor that another task sends unasked.
  Status take(const RendezvousKey& key, AnyTensor tensor, bool is_dead) {
    return local_.send(key, std::move(tensor), is_dead);
  }
  /// Sends a gathered tensor that found no message to travel with.
  void push_on(PushedTensor pushed);
  /// Tensors that nobody has asked for yet, and receives that wait.
  std::size_t num_pending() const { return local_.num_pending(); }
  /// Why the step was aborted; ok if it was not.
  Status end() const { return local_.end(); }
  /// Tensors that a Recv of this task, or another task that has asked for them, waits for.
  std::vector<RendezvousKey> wanted(std::size_t max) const { return local_.wanted(max); }
  std::size_t num_wanted() const { return local_.num_wanted(); }

 private:
  void push(const RendezvousKey& key, const AnyTensor& tensor, bool is_dead);

  const std::uint64_t step_;
  const std::shared_ptr<const std::string> task_;
  const std::shared_ptr<TensorSource> source_;
  LocalRendezvous local_;
  CancellationSource ending_;  ///< gives up requests to other tasks
};

/// The steps that this task takes part in. The table also holds a step whose tensors others ask for before this task
/// has heard of the step. The table forgets a step when none of its parts runs here any more and all sent tensors
/// have been received. If a step has ended by an error, the table remembers its number and the error: later requests
/// for the step get that error, and no further part of the step begins.
///
/// Thread safety: safe. Holds no lock while it calls.
class StepTable : public std::enable_shared_from_this<StepTable> {
 public:
  struct Options {
    std::string task;
    std::shared_ptr<TensorSource> source;
    /// Steps that other tasks have spoken of and that have not begun here; the oldest beyond this limit are ended.
    std::size_t max_awaited = 16384;
    /// Bytes of one sender's tensors, with the bytes needed to keep them, for steps that have not begun here. Beyond
    /// this limit the oldest of the sender's steps are ended.
    std::uint64_t max_early_bytes = std::uint64_t{64} << 20;
    /// Steps that have ended by an error; the oldest beyond this limit are forgotten.
    std::size_t max_ended = 65536;
  };

  explicit StepTable(Options options)
      : options_(std::move(options)), task_(std::make_shared<const std::string>(options_.task)) {}

  /// A part of the step, or its client, is here until the caller lets go of the result. `owner` names the client that
  /// began it.
  std::shared_ptr<StepRendezvous> begin(std::uint64_t step, const std::string& owner);
  /// Serves another task that asks for a tensor. Errors, given to `done`: also the error that the step has ended by.
  void serve(std::uint64_t step, const RendezvousKey& key, CancellationToken cancellation, Rendezvous::RecvDone done);
  /// Takes a tensor that another task, `owner`, sends unasked. If the step has not begun here, the tensor is kept; if
  /// there are too many of these steps, the oldest are ended (ResourceExhausted). Errors: Aborted for a tensor that
  /// was sent before; the error that has ended the step.
  Status take(std::uint64_t step, const std::string& owner, const RendezvousKey& key, AnyTensor tensor, bool is_dead);
  /// Ends the step, also if it begins only later: waiting receives get the error, and sent tensors are released.
  void cancel(std::uint64_t step, const Status& why);
  /// Cancels steps that wait for a tensor of this task and incarnation, because the tensor may have been lost. Only
  /// steps count that had their entry when `next_entry` was `before`.
  void cancel_waits_for(const std::string& task, std::uint64_t incarnation, std::uint64_t before, const Status& why);
  /// The number of the next entry, which grows with each step that this table comes to know.
  std::shared_ptr<const std::atomic<std::uint64_t>> next_entry() const { return next_number_; }
  /// Cancels all steps that `owner` began, because `owner` is gone.
  void cancel_all_of(const std::string& owner, const Status& why);
  void cancel_all(const Status& why);
  std::size_t size() const;

  /// A tensor that a step waits for.
  struct Wait {
    std::uint64_t step = 0;
    RendezvousKey key;
  };
  /// At most `max` waits, in no order.
  std::vector<Wait> waits(std::size_t max) const;
  std::size_t num_waits() const;

 private:
  /// The tensors that one sender has sent to steps that have not begun here. The record exists as long as there are
  /// any.
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
    std::vector<EarlySender*> early;  ///< of tensors that came before it began
    bool is_over() const { return num_running == 0 && num_served == 0 && rendezvous->num_pending() == 0; }
  };

  struct Awaited {
    std::uint64_t step, number;
  };
  using Steps = std::map<std::uint64_t, Entry>;  ///< by numbers that others choose, so no hash table
  /// The rendezvous of steps that were ended to make room; to be aborted without the mutex.
  using Displaced = std::vector<std::shared_ptr<StepRendezvous>>;

  /// Waits of entries with a number below `before`.
  std::vector<Wait> waits(std::size_t max, std::uint64_t before) const;

  // With the mutex held.
  Entry& entry_of(std::uint64_t step, Displaced& displaced);
  /// Returns the end iterator if the step has begun, or is over.
  Steps::iterator find_awaited(const Awaited& awaited);
  void limit_awaited(std::uint64_t newest, Displaced& displaced);
  Status ended_by(std::uint64_t step) const;
  void note_end(std::uint64_t step, const Status& why);
  void count_early(std::uint64_t step, Entry& entry, const std::string& sender, std::uint64_t bytes);
  void limit_early(const std::string& sender, Displaced& displaced);
  void forget_early(Entry& entry);
  /// Ends a step that has not begun.
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
