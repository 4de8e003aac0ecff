#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/inspect/metrics.hpp>

#include <algorithm>
#include <fstream>
#include <span>
#include <utility>
#include <vector>

#include <unistd.h>

namespace dflow::net {

namespace detail {

/// A label's value as Prometheus reads it.
std::string label_text(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string http_answer(std::string_view status, std::string_view type, std::string_view body) {
  return str_cat("HTTP/1.0 ", status, "\r\nContent-Type: ", type, "\r\nContent-Length: ", body.size(),
                 "\r\nConnection: close\r\n\r\n", body);
}

}  // namespace detail

std::string prometheus_text(const TaskCounters& counters, const TaskGauges& gauges) {
  const std::string task = detail::label_text(gauges.task);
  std::string out;
  const auto head = [&](std::string_view name, std::string_view type, std::string_view help) {
    out += str_cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  };
  const auto one = [&](std::string_view name, std::string_view type, std::string_view help, std::uint64_t value) {
    head(name, type, help);
    out += str_cat(name, "{task=\"", task, "\"} ", value, "\n");
  };
  const auto by_code = [&](std::string_view name, std::string_view help, const TaskCounters::Ends& ends) {
    head(name, "counter", help);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::uint64_t count = ends[i].load();
      if (count == 0 && i != 0) continue;
      out += str_cat(name, "{task=\"", task, "\",code=\"", code_name(code_from_number(static_cast<int>(i))), "\"} ",
                     count, "\n");
    }
  };
  by_code("dflow_steps_total",
          "Steps of the sessions of this task, and of sessions that it keeps for clients, by the code that they ended "
          "with.",
          counters.steps);
  by_code("dflow_step_parts_total",
          "Parts of steps that this task ran for sessions of other tasks, by the code that they ended with.",
          counters.parts);
  one("dflow_received_bytes_total", "counter", "Bytes from other tasks.", gauges.received_bytes);
  one("dflow_sent_bytes_total", "counter", "Bytes to other tasks.", gauges.sent_bytes);
  one("dflow_connections", "gauge", "Open connections with other tasks.", gauges.connections);
  one("dflow_sessions", "gauge", "Sessions of others that this task serves.", gauges.sessions);
  one("dflow_running_steps", "gauge", "Steps, and parts of steps, that run for others.", gauges.running_steps);
  one("dflow_pending_receives", "gauge", "Tensors that are waited for.", gauges.pending_receives);
  one("dflow_client_memory_bytes", "gauge", "Memory that is kept for clients, by their budgets.", gauges.client_bytes);
  one("dflow_resident_memory_bytes", "gauge", "Memory of the process.", gauges.resident_bytes);
  return out;
}

std::uint64_t resident_memory_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string metrics_address(const std::string& address) {
  const std::size_t begin = address.starts_with(':') ? 1 : 0;
  const bool is_port = address.size() > begin && address.find_first_not_of("0123456789", begin) == std::string::npos;
  return is_port ? str_cat("127.0.0.1:", address.substr(begin)) : address;
}

/// One connection: reads a request, writes the answer, and ends.
class MetricsServer::Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(std::unique_ptr<Stream> stream, std::shared_ptr<MetricsServer> server)
      : stream_(std::move(stream)), server_(std::move(server)) {}

  void start() {
    const Options& options = server_->options_;
    request_.reserve(options.max_request_bytes);
    timer_ = options.clock->schedule_after(options.timeout, [weak = weak_from_this()] {
      if (const std::shared_ptr<Exchange> self = weak.lock()) self->stream_->close();
    });
    read_next();
  }
  void close() { stream_->close(); }
  bool is_answering() const noexcept { return is_answering_.load(); }

 private:
  void read_next() {
    stream_->read_some(room_, count_, [self = shared_from_this()](const Status& status) { self->on_read(status); });
  }

  void on_read(const Status& status) {
    if (!status.ok()) return finish();
    const std::size_t limit = server_->options_.max_request_bytes;
    request_.append(reinterpret_cast<const char*>(room_.data()), std::min(count_, limit + 1 - request_.size()));
    const bool is_whole = request_.find("\r\n\r\n") != std::string::npos || request_.find("\n\n") != std::string::npos;
    if (!is_whole && request_.size() <= limit) return read_next();
    is_answering_.store(true);
    try {
      answer_ = is_whole ? server_->answer(request_)
                         : detail::http_answer("431 Request Header Fields Too Large", "text/plain", "too long\n");
    } catch (...) {
      answer_ = detail::http_answer("500 Internal Server Error", "text/plain", "there is no answer\n");
    }
    stream_->write({std::as_bytes(std::span(answer_.data(), answer_.size()))},
                   [self = shared_from_this()](const Status&) { self->finish(); });
  }

  void finish() {
    server_->options_.clock->cancel(timer_);
    stream_->close();
    server_->forget(shared_from_this());
  }

  const std::unique_ptr<Stream> stream_;
  const std::shared_ptr<MetricsServer> server_;
  std::array<std::byte, 1024> room_;
  std::size_t count_ = 0;
  std::string request_, answer_;
  std::atomic<bool> is_answering_{false};
  TimerId timer_{};
};

void MetricsServer::listen(const std::string& address) {
  std::unique_ptr<Listener> listener;
  try {
    listener = options_.transport->listen(metrics_address(address));
  } catch (const Error& error) {
    throw_error(error.status().with_prefix("the task's metrics: "));
  }
  accepting_ = std::make_shared<AcceptLoop>(
      std::move(listener), AcceptLoop::Options{options_.clock, options_.log, "a connection to the metrics"},
      [weak = weak_from_this()](std::unique_ptr<Stream> stream) {
        if (const std::shared_ptr<MetricsServer> self = weak.lock()) self->admit(std::move(stream));
      });
  accepting_->start();
}

void MetricsServer::close() {
  std::vector<std::shared_ptr<Exchange>> open;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    open = open_;
  }
  if (accepting_ != nullptr) accepting_->close();
  for (const std::shared_ptr<Exchange>& exchange : open) exchange->close();
}

void MetricsServer::admit(std::unique_ptr<Stream> stream) {
  const auto exchange = std::make_shared<Exchange>(std::move(stream), shared_from_this());
  std::shared_ptr<Exchange> given_up;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return;  // which closes it
    if (open_.size() >= options_.max_connections) {
      const auto silent = std::ranges::find_if_not(open_, &Exchange::is_answering);
      if (silent == open_.end()) return;
      given_up = *silent;
      open_.erase(silent);
    }
    open_.push_back(exchange);
  }
  if (given_up != nullptr) given_up->close();
  exchange->start();
}

void MetricsServer::forget(const std::shared_ptr<Exchange>& exchange) {
  const std::lock_guard lock(mutex_);
  std::erase(open_, exchange);
}

std::string MetricsServer::answer(std::string_view request) const {
  const std::string_view line = request.substr(0, request.find_first_of("\r\n"));
  const std::size_t first = line.find(' ');
  if (first == std::string_view::npos) {
    return detail::http_answer("400 Bad Request", "text/plain", "this is no request of HTTP\n");
  }
  const std::string_view rest = line.substr(first + 1);
  const std::string_view path = rest.substr(0, rest.find_first_of(" ?"));
  if (line.substr(0, first) != "GET") {
    return detail::http_answer("405 Method Not Allowed", "text/plain", "only GET is answered\n");
  }
  if (path != "/metrics" && path != "/") {
    return detail::http_answer("404 Not Found", "text/plain", "there is only /metrics\n");
  }
  return detail::http_answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", options_.text());
}

}  // namespace dflow::net
