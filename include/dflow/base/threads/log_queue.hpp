#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/threads/thread_pool.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace dflow::detail {

struct LogQueueOptions {
  /// Gets the lines, never two at once. It may block. Null: standard error.
  std::function<void(std::string_view)> write = nullptr;
  /// Stands before each line on standard error.
  std::string prefix = {};
  /// Measures how many lines each peer causes; null: the machine's clock.
  std::shared_ptr<Clock> clock = nullptr;
  /// Calls `write`; null: a thread of the queue's own.
  std::shared_ptr<ThreadPool> pool = nullptr;
  /// A line is dropped if more lines or bytes would wait.
  std::size_t max_lines = 1024;
  std::size_t max_bytes = std::size_t{1} << 20;
  /// The longest wait of `flush`, and of `close` for standard error.
  Duration patience = std::chrono::seconds(1);
};

/// Lines on their way to a log whose reader may stop, or go away. A thread that adds a line never waits for the reader,
/// and a write raises no SIGPIPE. If the queue is full, lines are dropped until half of it is written; then a line says
/// how many.
///
/// Lines that a peer causes are cut to `max_peer_line_bytes`. Each peer may cause `peer_lines` at once and one more a
/// second, and all peers together may cause ten times as many. The other lines are left out, and the next line of a
/// peer comes after a line that says how many.
///
/// The queue must be made by std::make_shared. While lines wait, it lives on.
///
/// Thread safety: safe. `write` may call all functions.
class LogQueue : public std::enable_shared_from_this<LogQueue> {
 public:
  static constexpr int peer_lines = 20;
  static constexpr std::size_t max_peer_line_bytes = 512;

  explicit LogQueue(LogQueueOptions options);

  /// Never blocks. Control characters are written out, and a long line is cut.
  void add(std::string_view line) noexcept;
  /// A line that `peer` has caused. A peer is a host: "tcp://1.2.3.4:5" and "tcp://1.2.3.4:6" are one.
  void add(std::string_view line, std::string_view peer) noexcept;
  /// Blocks until the lines are written, for `patience` at most. Within `write`, on a ReactorThread, and with a given
  /// pool, it returns at once.
  void flush() noexcept;
  /// Writes the last lines, as far as `flush` does, and drops the rest. With a given pool the calling thread writes
  /// them. Afterwards `write` is not called any more; if another thread is in a given `write`, `close` waits for it.
  void close() noexcept;

 private:
  static constexpr int all_peers_lines = 10 * peer_lines;
  static constexpr std::size_t max_peers = 256;

  /// How many lines a peer may still cause.
  struct Allowance {
    double lines;
    Clock::time_point since;

    bool take(Clock::time_point now, int most);
    double at(Clock::time_point now, int most) const;
  };

  bool admits(std::string_view peer);
  void push(std::string line);
  void push_number_left_out();
  template <class F>
  void add_by(const F& push_lines) noexcept;
  bool next(std::string& line) noexcept;
  void drain() noexcept;
  void write_lines(std::unique_lock<std::mutex>& lock) noexcept;
  void write_line(const std::string& line) const noexcept;
  bool must_not_wait() const noexcept;
  void wait_until_written(std::unique_lock<std::mutex>& lock);

  const LogQueueOptions options_;
  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;  ///< guards the members below
  std::condition_variable changed_;
  std::shared_ptr<ThreadPool> pool_;  ///< its own is made for the first line
  std::deque<std::string> lines_;
  std::size_t bytes_ = 0;
  bool is_full_ = false;           ///< lines are dropped
  std::uint64_t num_dropped_ = 0;  ///< that no line has told of
  std::uint64_t num_left_out_ = 0;
  bool is_scheduled_ = false;  ///< the pool is going to write, or writes
  std::thread::id writer_{};   ///< the thread that writes
  bool is_closed_ = false;
  std::map<std::string, Allowance, std::less<>> peers_;
  Allowance all_peers_;
};

/// A log that leaves its lines to a queue.
struct QueuedLog {
  std::shared_ptr<LogQueue> queue;

  void operator()(std::string_view line) const { queue->add(line); }
};

}  // namespace dflow::detail
