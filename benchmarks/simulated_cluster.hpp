#pragma once

#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/simulation/simulated_network.hpp>
#include <dflow/net/simulation/simulation.hpp>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

/// A cluster in this thread, on a simulated network and clock.
namespace dflow::bench {

struct SimulatedTask {
  std::shared_ptr<net::SimulatedProcess> process;
  std::unique_ptr<net::Server> server;
  std::uint64_t number = 0;
};

struct SimulatedClusterOptions {
  std::uint64_t seed = 1;
  net::SimulationOptions simulation = {};
  net::SimulatedNetworkOptions network = {};
  OpSet ops = standard_ops;
};

/// dflow's own servers and sessions, each task in a process and on a machine of its own.
class SimulatedCluster {
 public:
  explicit SimulatedCluster(const SimulatedClusterOptions& options = {})
      : simulation(options.seed, options.simulation), network(simulation, options.network), ops_(options.ops) {}
  /// Tasks that end with the cluster print nothing.
  ~SimulatedCluster() { is_ending_ = true; }
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  /// Before any task is started.
  void add_tasks(const std::string& job, std::int64_t count) {
    for (int i = 0; i < count; ++i) spec_.add_task(job, i, job + std::to_string(i));
  }

  SimulatedTask& start(const std::string& job, int index) {
    SimulatedTask& task = tasks_.emplace_back();
    task.number = tasks_.size();
    task.process = simulation.start(job + std::to_string(index));
    net::ServerOptions options;
    options.ops = ops_;
    options.pool = task.process->pool();
    options.clock = task.process->clock();
    options.transport = network.transport(task.process);
    options.random = options.draw_seed = [this] { return simulation.random(); };
    options.log = [this](std::string_view line) {
      if (!is_ending_) std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    };
    net::ClusterSpec own = spec_;
    own.set_task(job, index);
    task.server = std::make_unique<net::Server>(own, options);
    return task;
  }

  /// A session on the parameter servers and the task.
  std::unique_ptr<Session> session(const Graph& graph, const SimulatedTask& task) const {
    SessionOptions options;
    options.ops = ops_;
    options.target = task.server->target({"/job:ps"});
    options.clock = task.process->clock();
    options.callbacks = task.process->pool();
    options.incarnation = task.number;
    return std::make_unique<Session>(graph, options);
  }

 private:
  bool is_ending_ = false;  // before the simulation, at whose end servers speak

 public:
  net::Simulation simulation;
  net::SimulatedNetwork network;

 private:
  const OpSet ops_;
  net::ClusterSpec spec_;
  std::deque<SimulatedTask> tasks_;
};

}  // namespace dflow::bench
