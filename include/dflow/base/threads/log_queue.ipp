#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/reactor_thread.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/base/threads/log_queue.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

namespace dflow::detail {

/// While it lives, a write of this thread to a pipe without a reader raises no signal. Other threads, and what the
/// process does on the signal, stay as they are.
class NoBrokenPipe {
 public:
  NoBrokenPipe() noexcept {
    sigemptyset(&broken_pipe_);
    sigaddset(&broken_pipe_, SIGPIPE);
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe_, &before_);
  }
  ~NoBrokenPipe() {
    if (!was_pending_) take_pending();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  void take_pending() noexcept {
#if defined(__APPLE__)  // without sigtimedwait
    sigset_t pending;
    int signal;
    if (::sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1) ::sigwait(&broken_pipe_, &signal);
#else
    const std::timespec at_once{};
    while (::sigtimedwait(&broken_pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
#endif
  }

  sigset_t broken_pipe_, before_;
  bool was_pending_ = false;
};

/// Blocks. The rest of a text that standard error does not take is lost.
void write_to_standard_error(std::string_view text) noexcept {
  const int descriptor = ::fileno(stderr);
  while (!text.empty()) {
    const ssize_t put = ::write(descriptor, text.data(), text.size());
    if (put >= 0) {
      text.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd wanted{descriptor, POLLOUT, 0};
      ::poll(&wanted, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

std::string_view without_port(std::string_view peer) noexcept {
  const std::size_t colon = peer.rfind(':');
  const bool has_port = colon != std::string_view::npos && colon + 1 < peer.size() &&
                        peer.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
  return has_port ? peer.substr(0, colon) : peer;
}

LogQueue::LogQueue(LogQueueOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? options_.clock : std::make_shared<RealClock>()),
      pool_(options_.pool),
      all_peers_{all_peers_lines, clock_->now()} {}

// ---- adding ----

template <class F>
void LogQueue::add_by(const F& push_lines) noexcept {
  std::shared_ptr<ThreadPool> pool;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return;
    try {
      push_lines();
      if ((lines_.empty() && num_dropped_ == 0) || is_scheduled_) return;
      if (pool_ == nullptr) {
        pool_ = std::make_shared<ElasticPool>(ElasticPoolOptions{.max_threads = 1, .name = "dflow log"});
      }
    } catch (...) {  // no memory
      ++num_dropped_;
      is_full_ = true;
      return;
    }
    pool = pool_;
    is_scheduled_ = true;
  }
  try {
    pool->schedule([self = shared_from_this()] { self->drain(); });
  } catch (...) {  // the lines wait for the next one, or for `close`
    const std::lock_guard lock(mutex_);
    is_scheduled_ = false;
    changed_.notify_all();
  }
}

void LogQueue::add(std::string_view line) noexcept {
  add_by([&] { push(printable(line)); });
}

void LogQueue::add(std::string_view line, std::string_view peer) noexcept {
  add_by([&] {
    if (!admits(without_port(peer))) {
      ++num_left_out_;
      return;
    }
    push_number_left_out();
    push(printable(line, max_peer_line_bytes));
  });
}

void LogQueue::push(std::string line) {
  is_full_ |= lines_.size() >= options_.max_lines || bytes_ + line.size() > options_.max_bytes;
  if (is_full_) {
    ++num_dropped_;
    return;
  }
  const std::size_t bytes = line.size();
  lines_.push_back(std::move(line));
  bytes_ += bytes;
}

void LogQueue::push_number_left_out() {
  if (num_left_out_ == 0) return;
  push(str_cat(num_left_out_, " lines that others have caused were left out"));
  num_left_out_ = 0;
}

/// A host that causes a line seldom needs no entry. If there are too many hosts, those without an entry share one.
bool LogQueue::admits(std::string_view peer) {
  const Clock::time_point now = clock_->now();
  auto found = peers_.find(peer);
  if (found == peers_.end() && peers_.size() >= max_peers) {
    std::erase_if(peers_, [&](const auto& entry) { return entry.second.at(now, peer_lines) >= peer_lines; });
  }
  if (found == peers_.end()) {
    const std::string_view key = peers_.size() < max_peers ? peer : std::string_view();
    found = peers_.try_emplace(std::string(key), Allowance{peer_lines, now}).first;
  }
  return found->second.take(now, peer_lines) && all_peers_.take(now, all_peers_lines);
}

double LogQueue::Allowance::at(Clock::time_point now, int most) const {
  const double each_second = static_cast<double>(most) / peer_lines;
  const double passed = std::chrono::duration<double>(now - since).count();
  return std::min<double>(most, lines + each_second * std::max(passed, 0.0));
}

bool LogQueue::Allowance::take(Clock::time_point now, int most) {
  lines = at(now, most);
  since = now;
  if (lines < 1) return false;
  lines -= 1;
  return true;
}

// ---- writing ----

bool LogQueue::next(std::string& line) noexcept {
  if (is_closed_) return false;
  if (is_full_ && lines_.size() <= options_.max_lines / 2 && bytes_ <= options_.max_bytes / 2) {
    is_full_ = false;
    try {
      push(str_cat(num_dropped_, " lines were dropped"));
      num_dropped_ = 0;
    } catch (...) {  // the next such line tells of them
    }
  }
  if (lines_.empty()) return false;
  line = std::move(lines_.front());
  lines_.pop_front();
  bytes_ -= line.size();
  return true;
}

void LogQueue::drain() noexcept {
  std::unique_lock lock(mutex_);
  if (writer_ == std::thread::id()) write_lines(lock);  // else `close` writes them
  is_scheduled_ = false;
  changed_.notify_all();
}

void LogQueue::write_lines(std::unique_lock<std::mutex>& lock) noexcept {
  writer_ = std::this_thread::get_id();
  for (std::string line; next(line);) {
    lock.unlock();
    write_line(line);
    lock.lock();
  }
  writer_ = {};
  changed_.notify_all();
}

void LogQueue::write_line(const std::string& line) const noexcept {
  const NoBrokenPipe none;
  try {
    if (options_.write != nullptr) return options_.write(line);
    write_to_standard_error(str_cat(options_.prefix, line, "\n"));
  } catch (...) {  // nobody is there to throw to
  }
}

// ---- the end ----

bool LogQueue::must_not_wait() const noexcept {
  return writer_ == std::this_thread::get_id() || ReactorThread::is_current();
}

void LogQueue::wait_until_written(std::unique_lock<std::mutex>& lock) {
  if (options_.pool != nullptr || must_not_wait()) return;
  changed_.wait_for(lock, options_.patience, [&] { return !is_scheduled_; });
}

void LogQueue::flush() noexcept {
  std::unique_lock lock(mutex_);
  wait_until_written(lock);
}

void LogQueue::close() noexcept {
  add_by([&] { push_number_left_out(); });
  std::unique_lock lock(mutex_);
  if (is_closed_) return;
  const auto is_free = [&] { return writer_ == std::thread::id(); };
  wait_until_written(lock);
  if (options_.pool != nullptr && !must_not_wait()) {
    changed_.wait(lock, is_free);
    write_lines(lock);
  }
  is_closed_ = true;
  lines_.clear();
  bytes_ = 0;
  if (options_.write != nullptr && !must_not_wait()) changed_.wait(lock, is_free);
}

}  // namespace dflow::detail
