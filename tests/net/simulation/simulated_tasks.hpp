// Tasks of a cluster in a simulation, each on a machine of its name, for tests that cause the faults themselves.
#pragma once

#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/simulation/simulated_network.hpp>
#include <dflow/net/simulation/simulation.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::testing {

class SimulatedTasks {
 public:
  /// "ps0" is task 0 of job "ps".
  explicit SimulatedTasks(const std::vector<std::string>& names, std::uint64_t seed = 1)
      : simulation(seed), network(simulation) {
    for (const std::string& name : names) spec.add_task(job_of(name), 0, name);
    for (const std::string& name : names) start(name, name);
  }
  ~SimulatedTasks() {
    servers.clear();
    simulation.run_for(std::chrono::seconds(1));
  }

  /// Starts the task `name` on the machine `machine`. An `incarnation` of 0 is made of the time.
  void start(const std::string& name, const std::string& machine, std::uint64_t incarnation = 0) {
    const auto process = processes[machine] = simulation.start(machine);
    net::ServerOptions options;
    options.incarnation = incarnation;
    options.pool = process->pool();
    options.clock = process->clock();
    options.transport = network.transport(process);
    options.random = options.draw_seed = [this] { return simulation.random(); };
    options.log = [this, machine](std::string_view line) { log.push_back(machine + ": " + std::string(line)); };
    options.callbacks = std::make_shared<InlinePool>();
    net::ClusterSpec cluster;
    for (const net::ClusterSpec::Task& task : spec.tasks()) {
      cluster.add_task(task.job, task.index, task.job + "0" == name ? machine : task.address);
    }
    cluster.set_task(job_of(name), 0);
    servers[machine] = std::make_unique<net::Server>(cluster, options);
  }

  std::unique_ptr<Session> session(const Graph& graph, const std::string& machine) {
    SessionOptions options;
    options.target = servers.at(machine)->target();
    options.clock = processes.at(machine)->clock();
    options.callbacks = processes.at(machine)->pool();
    options.incarnation = simulation.random();
    return std::make_unique<Session>(graph, options);
  }

  bool has_logged(std::string_view text) const {
    for (const std::string& line : log) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }

  net::Simulation simulation;
  net::SimulatedNetwork network;
  net::ClusterSpec spec;
  std::vector<std::string> log;
  std::map<std::string, std::shared_ptr<net::SimulatedProcess>> processes;
  std::map<std::string, std::unique_ptr<net::Server>> servers;

 private:
  static std::string job_of(const std::string& name) { return name.substr(0, name.size() - 1); }
};

/// The end of a step that was begun, if it has ended.
struct StepEnd {
  std::shared_ptr<std::optional<Status>> status = std::make_shared<std::optional<Status>>();

  auto callback() const {
    return [into = status](const Status& ended, const auto&...) { *into = ended; };
  }
  bool has_come() const { return status->has_value(); }
};

}  // namespace dflow::testing
