// The threads of AsioTransport, and the state that its streams and listeners share. Included by asio_transport.ipp.
#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/reactor_thread.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/threads/completion.hpp>
#include <dflow/base/threads/log_queue.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#if defined(DFLOW_HAS_OPENSSL)
#include <asio/ssl/context.hpp>
#endif

namespace dflow::net {
namespace detail {

/// One thread's work. It runs until nothing is under way and nobody keeps it going.
class AsioLoop {
 public:
  asio::io_context context{1};

  explicit AsioLoop(bool lets_others_run) noexcept : lets_others_run_(lets_others_run) {}

  void run() noexcept {
    const dflow::detail::ReactorThread reactor;
    for (;;) {
      try {
        if (!lets_others_run_) context.run();
        while (lets_others_run_ && context.run_one() != 0) finish_turn();
        return;
      } catch (...) {  // one task's want of memory is not the others'
      }
    }
  }
  bool is_current() { return context.get_executor().running_in_this_thread(); }

 private:
  /// Until nothing has come while the others ran.
  void finish_turn() {
    do {
      context.poll();
      std::this_thread::yield();
    } while (context.poll() != 0);
  }

  const bool lets_others_run_;
};

/// Tells a completion on the thread of a loop.
inline void complete(Completion& done, Status status) noexcept {
  try {
    done(std::move(status));
  } catch (...) {  // completions have nobody to throw to
  }
}

/// If there is no memory for it, the completion is dropped, and told so.
inline void post_completion(AsioLoop& loop, Completion done, Status status) noexcept {
  try {
    asio::post(loop.context,
               [done = std::move(done), status = std::move(status)]() mutable { complete(done, std::move(status)); });
  } catch (...) {
  }
}

/// A connect under way.
class AsioEndable {
 public:
  virtual ~AsioEndable() = default;
  /// Ends it with Cancelled. Any thread.
  virtual void cancel() noexcept = 0;
};

}  // namespace detail

/// A holder of this state keeps the threads going.
struct AsioTransport::Shared {
  struct Loop {
    std::shared_ptr<detail::AsioLoop> loop;
    asio::executor_work_guard<asio::io_context::executor_type> work;
  };

  explicit Shared(const AsioTransportOptions& its_options) : options(its_options) {
    if (options.clock == nullptr) options.clock = std::make_shared<RealClock>();
    make_log();
    for (int i = 0; i < options.threads; ++i) {
      auto loop = std::make_shared<detail::AsioLoop>(options.lets_others_run);
      auto work = asio::make_work_guard(loop->context);
      loops.push_back({std::move(loop), std::move(work)});
    }
  }

  /// A task's log is a queue already, and its owner closes it.
  void make_log() {
    if (options.log == nullptr) return;
    const auto* const queued = options.log.target<dflow::detail::QueuedLog>();
    owns_log = queued == nullptr;
    log = owns_log ? std::make_shared<dflow::detail::LogQueue>(
                         dflow::detail::LogQueueOptions{.write = options.log, .clock = options.clock})
                   : queued->queue;
  }

  const std::shared_ptr<detail::AsioLoop>& next_loop() noexcept {
    return loops[next.fetch_add(1, std::memory_order_relaxed) % loops.size()].loop;
  }

  AsioTransportOptions options;
  std::shared_ptr<dflow::detail::LogQueue> log;  ///< null: nobody is told
  bool owns_log = false;
  std::vector<Loop> loops;
  std::atomic<std::size_t> next{0};
#if defined(DFLOW_HAS_OPENSSL)
  std::unique_ptr<asio::ssl::context> tls;
#endif

  /// Held by streams and listeners in users' hands.
  std::shared_ptr<const int> users = std::make_shared<const int>(0);
  std::mutex mutex;
  bool has_ended = false;  ///< the transport is destroyed: no connect may succeed any more
  std::list<std::weak_ptr<detail::AsioEndable>> connects;
};

}  // namespace dflow::net
