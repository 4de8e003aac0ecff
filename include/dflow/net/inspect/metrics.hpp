#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/base/status.hpp>
#include <dflow/net/transport/accept_loop.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::net {

/// The counters of a task, from its start.
///
/// Thread safety: safe.
struct TaskCounters {
  static constexpr std::size_t num_codes = 17;

  /// By the code of the end.
  using Ends = std::array<std::atomic<std::uint64_t>, num_codes>;
  Ends steps = {};  ///< of sessions that have this task as their master
  Ends parts = {};  ///< of steps, which this task ran for other masters

  void count_step(Code code) noexcept { count(steps, code); }
  void count_part(Code code) noexcept { count(parts, code); }

 private:
  static void count(Ends& ends, Code code) noexcept {
    const auto number = static_cast<std::size_t>(code);
    ends[number < num_codes ? number : static_cast<std::size_t>(Code::unknown)].fetch_add(1);
  }
};

/// The present state of a task.
struct TaskGauges {
  std::string task;
  std::uint64_t received_bytes = 0;  ///< from other tasks, and to them, since it began
  std::uint64_t sent_bytes = 0;
  std::uint64_t connections = 0;
  std::uint64_t sessions = 0;
  std::uint64_t running_steps = 0;
  std::uint64_t pending_receives = 0;
  std::uint64_t client_bytes = 0;
  std::uint64_t resident_bytes = 0;
};

/// Both in the text format of Prometheus, version 0.0.4.
std::string prometheus_text(const TaskCounters& counters, const TaskGauges& gauges);
/// Memory of this process; 0 if the system does not say.
std::uint64_t resident_memory_bytes();
/// The address of the metrics: an address without a host ("9100", ":9100") is loopback's.
std::string metrics_address(const std::string& address);

/// Answers HTTP/1.0: `GET /metrics` and `GET /` with a text that is made for each, one request a connection. The
/// input from strangers is bounded: the bytes of a request (431), its time, and the number of connections at once. A
/// further connection takes the place of the oldest one without a whole request, so that half requests keep no scrape
/// away.
///
/// Thread safety: safe. `text` is called on I/O threads.
class MetricsServer : public std::enable_shared_from_this<MetricsServer> {
 public:
  struct Options {
    std::shared_ptr<Transport> transport;
    std::shared_ptr<Clock> clock;
    std::function<std::string()> text;
    std::function<void(std::string_view)> log;
    std::size_t max_request_bytes = 4096;
    std::size_t max_connections = 16;
    Duration timeout = std::chrono::seconds(10);
  };

  explicit MetricsServer(Options options) : options_(std::move(options)) {}

  /// Errors: the errors of `Transport::listen`.
  void listen(const std::string& address);
  std::string address() const { return accepting_->address(); }
  void close();

 private:
  class Exchange;

  void admit(std::unique_ptr<Stream> stream);
  std::string answer(std::string_view request) const;
  void forget(const std::shared_ptr<Exchange>& exchange);

  const Options options_;
  std::shared_ptr<AcceptLoop> accepting_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Exchange>> open_;  ///< the oldest first
  bool is_closed_ = false;
};

}  // namespace dflow::net
