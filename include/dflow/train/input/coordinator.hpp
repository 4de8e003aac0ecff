#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/unique_function.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dflow::train {

struct CoordinatorOptions {
  /// Error codes of an ordinary end: an error with such a code stops all threads, and `join` does not throw it.
  std::vector<Code> clean_stop = {Code::out_of_range};
  /// Null: the machine's.
  std::shared_ptr<Clock> clock = nullptr;
};

struct JoinOptions {
  /// Time that threads may still run after a stop was requested.
  Duration grace = std::chrono::minutes(2);
  /// Threads that run longer are no error.
  bool ignore_stragglers = false;
};

/// Stops a set of threads together. Any thread, of the set or not, requests a stop, with an error or without. `join`
/// waits for the set and throws the first error. Code for TensorFlow's Coordinator is written the same way.
/// ```cpp
/// df::train::Coordinator coordinator;
/// coordinator.start("reader", [&] {
///   while (!coordinator.should_stop()) read_some();  // what it throws stops the others
/// });
/// coordinator.join();                                // until all have ended, or one has failed: throws that error
/// ```
/// The first request counts. A later error is a consequence of the stop, and is dropped.
///
/// Thread safety: any thread may call all functions. The threads of this object may call all but `join`.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options = {});
  /// Requests a stop and blocks until all threads have ended, however long that takes.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Makes `should_stop` true. Callbacks of the stop token run in this call.
  void request_stop();
  /// The same with an error for `join` to throw, unless a stop was requested before; null is no error.
  /// Errors: if `join` has returned, it cannot report the error, and this call throws it. In a thread of this object
  /// the call keeps the error for the next `join` instead.
  void request_stop(std::exception_ptr error);
  /// The same with `Error(status)`.
  void request_stop(const Status& status);
  bool should_stop() const noexcept;
  /// A token that is stopped with the threads: for `RunOptions::stop`, and for other waits. It stays stopped after
  /// `clear_stop`.
  std::stop_token stop_token() const;
  /// Blocks.
  void wait_for_stop() const;
  /// Blocks for at most `timeout`. Returns whether a stop was requested.
  bool wait_for_stop(Duration timeout) const;

  /// Calls `body()`; an exception requests the stop. Returns whether `body` has returned.
  template <std::invocable Body>
  bool stop_on_exception(Body&& body) {
    try {
      std::forward<Body>(body)();
      return true;
    } catch (...) {
      request_stop(std::current_exception());
      return false;
    }
  }

  /// Runs `body` in a thread of its own; an exception requests the stop. `join` calls the thread `name` in errors.
  /// Errors: ResourceExhausted if no thread can be started; InvalidArgument for an empty function.
  void start(std::string name, UniqueFunction<void()> body);
  /// Calls `body` in a thread of its own every `interval` until a stop, the first time at once. With an interval of
  /// zero there is no pause.
  void start_every(std::string name, Duration interval, UniqueFunction<void()> body);
  /// Starts several threads, as `start`, unless a thread of that key runs. Returns whether it has started them. If one
  /// thread cannot be started, a stop is requested for the threads before it.
  bool start_group(const std::string& key, std::vector<std::pair<std::string, UniqueFunction<void()>>> bodies);
  /// Takes over a running thread: `join` waits for it too. A stop also stops the thread's own stop token. The thread
  /// must not let an exception out (`stop_on_exception`).
  void register_thread(std::string name, std::jthread thread);
  /// Names of the threads that run.
  std::vector<std::string> running_threads() const;

  /// Blocks until all threads have ended or a stop is requested, and then for the grace period.
  /// Errors: the error of the stop request, again in each later call. DeadlineExceeded, with the names of the threads
  /// that still run; a later call waits for them again. FailedPrecondition in a thread of this object, also in a
  /// thread that was taken over.
  void join(const JoinOptions& options = {});
  /// Forgets the stop, the error and `join`, so that threads can be started again. A thread that still runs was
  /// stopped by its token, but `should_stop` no longer tells it.
  void clear_stop();

 private:
  struct State;
  /// If `throws`, a thread outside of this object learns by an exception that its error comes too late.
  void request_stop(std::exception_ptr error, bool throws);

  std::shared_ptr<State> state_;  ///< timers hold it too
};

}  // namespace dflow::train
