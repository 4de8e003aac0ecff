// A cluster of servers in one process.
#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::testing {

/// Lines that servers have logged.
struct ServerLog {
  std::mutex mutex;
  std::vector<std::string> lines;

  bool has(std::string_view text) {
    const std::lock_guard lock(mutex);
    for (const std::string& line : lines) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }
};

/// "ps=2 worker=3", all by connections in memory.
class MemoryCluster {
 public:
  explicit MemoryCluster(std::vector<std::pair<std::string, int>> jobs, net::ServerOptions options = {}) {
    options_ = std::move(options);
    if (options_.transport == nullptr) {
      options_.transport = std::make_shared<net::MemoryTransport>(
          std::make_shared<WorkStealingPool>(2, ThreadPoolOptions{.name = "io"}));
    }
    options_.num_threads = 2;
    options_.startup_timeout = std::chrono::seconds(20);
    options_.log = [log = log_](std::string_view line) {
      const std::lock_guard lock(log->mutex);
      log->lines.emplace_back(line);
    };
    options_.callbacks = std::make_shared<InlinePool>();  // a line is there when what it tells of has happened
    for (const auto& [job, count] : jobs) {
      for (int i = 0; i < count; ++i) spec_.add_task(job, i, job + std::to_string(i));
    }
    for (const auto& [job, count] : jobs) {
      for (int i = 0; i < count; ++i) start(job, i);
    }
  }

  net::Server& start(const std::string& job, int task) {
    auto& server = servers_.emplace_back(std::pair(job + std::to_string(task), nullptr));
    server.second = std::make_unique<net::Server>(spec_of(job, task), options_);
    return *server.second;
  }

  void stop(const std::string& job, int task) {
    const std::string name = job + std::to_string(task);
    std::erase_if(servers_, [&](const auto& server) { return server.first == name; });
  }

  net::Server& server(const std::string& job, int task) {
    for (auto& [name, server] : servers_) {
      if (name == job + std::to_string(task)) return *server;
    }
    throw_error(Status::not_found(job));
  }

  net::ClusterSpec spec_of(const std::string& job, int task) const {
    net::ClusterSpec spec = spec_;
    spec.set_task(job, task);
    return spec;
  }
  const net::ClusterSpec& spec() const { return spec_; }
  net::ServerOptions& options() { return options_; }
  ServerLog& log() { return *log_; }

 private:
  net::ServerOptions options_;
  net::ClusterSpec spec_;
  std::shared_ptr<ServerLog> log_ = std::make_shared<ServerLog>();
  std::vector<std::pair<std::string, std::unique_ptr<net::Server>>> servers_;
};

}  // namespace dflow::testing
