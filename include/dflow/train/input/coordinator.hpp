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
  /// Errors that are an ordinary end: what is reported with one of these stops all, and `join` does not throw it.
  std::vector<Code> clean_stop = {Code::out_of_range};
  /// Null: the machine's.
  std::shared_ptr<Clock> clock = nullptr;
};

struct JoinOptions {
  /// How long threads may still run after a stop was requested.
  Duration grace = std::chrono::minutes(2);
  /// Those that run longer are no error.
  bool ignore_stragglers = false;
};

/// Stops a set of threads together: any of them, or anybody else, asks for it, with an error or without, and who waits
/// for them in `join` gets the first error. What was built for TensorFlow's Coordinator is built alike.
///
/// ```cpp
/// df::train::Coordinator coordinator;
/// coordinator.start("reader", [&] {
///   while (!coordinator.should_stop()) read_some();  // what it throws stops the others
/// });
/// coordinator.join();                                // until all have ended, or one has failed: throws that error
/// ```
/// The first request counts: an error that comes after it is a consequence of the stop, and dropped.
///
/// Thread safety: all functions may be called from any thread, those of this object too but for `join`.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorOptions options = {});
  /// Requests a stop and blocks until all threads have ended, however long that takes.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// From now on `should_stop` holds. Callbacks of the stop token run in this call.
  void request_stop();
  /// The same with what `join` is to throw, unless a stop was requested before; null is no error.
  /// Errors: throws the error itself where `join` has returned, which cannot report it any more. In one of the
  /// threads it is kept for the next `join` instead.
  void request_stop(std::exception_ptr error);
  /// The same with `Error(status)`.
  void request_stop(const Status& status);
  bool should_stop() const noexcept;
  /// Stopped with the threads: for `RunOptions::stop`, and for what waits with one. It stays so after `clear_stop`.
  std::stop_token stop_token() const;
  /// Blocks.
  void wait_for_stop() const;
  /// Blocks for at most so long; whether a stop was requested.
  bool wait_for_stop(Duration timeout) const;

  /// Calls `body()`; what it throws requests the stop. Whether it has returned.
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

  /// Runs `body` in a thread of its own. What it throws requests the stop. The name is what `join` calls it.
  /// Errors: ResourceExhausted if no thread can be started; InvalidArgument for an empty function.
  void start(std::string name, UniqueFunction<void()> body);
  /// Calls `body` in a thread of its own every `interval`, the first time at once, until a stop; without a pause if
  /// that is zero.
  void start_every(std::string name, Duration interval, UniqueFunction<void()> body);
  /// Several, as `start`, unless a thread of that key runs; whether it has started them. Where one cannot be started a
  /// stop is requested, for those that were.
  bool start_group(const std::string& key, std::vector<std::pair<std::string, UniqueFunction<void()>>> bodies);
  /// Takes over a thread that runs: `join` waits for it too. Its own stop token is stopped with the others. It must not
  /// let an exception out (`stop_on_exception`).
  void register_thread(std::string name, std::jthread thread);
  /// Names of those that run.
  std::vector<std::string> running_threads() const;

  /// Blocks until all threads have ended or a stop is requested, and then for the grace period.
  /// Errors: the error that the stop was requested with, also each time it is called again. DeadlineExceeded, naming
  /// them, for threads that still run; a later call waits for them again. FailedPrecondition in one of the threads,
  /// also one that was taken over.
  void join(const JoinOptions& options = {});
  /// Forgets stop, error and `join`, so that threads can be started again. A thread that still runs has been stopped by
  /// its token, but `should_stop` no longer tells it.
  void clear_stop();

 private:
  struct State;
  /// Where `throws` a thread of others learns that it comes too late.
  void request_stop(std::exception_ptr error, bool throws);

  std::shared_ptr<State> state_;  ///< timers hold it too
};

}  // namespace dflow::train
