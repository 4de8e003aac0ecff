// A session of a remote master over connections that get lost.
#include <catch2/catch.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/simulation/simulated_network.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "../simulation/simulated_tasks.hpp"
#include "support/errors.hpp"

namespace df = dflow;
using namespace std::chrono_literals;

TEST_CASE("a session of a remote master goes on over a new connection, with the variables that it has made") {
  df::net::Simulation simulation(3);
  df::net::SimulatedNetwork network(simulation);
  df::net::ClusterSpec spec;
  spec.add_task("ps", 0, "ps0");
  spec.add_task("worker", 0, "worker0");
  std::map<std::string, std::shared_ptr<df::net::SimulatedProcess>> processes;
  const auto options_of = [&](const std::string& name) {
    processes[name] = simulation.start(name);
    df::net::ServerOptions options;
    options.pool = processes[name]->pool();
    options.clock = processes[name]->clock();
    options.transport = network.transport(processes[name]);
    options.random = options.draw_seed = [&] { return simulation.random(); };
    options.log = [](std::string_view) {};
    return options;
  };
  std::map<std::string, std::unique_ptr<df::net::Server>> servers;
  for (const std::string job : {"ps", "worker"}) {
    df::net::ClusterSpec of_task = spec;
    of_task.set_task(job, 0);
    servers[job] = std::make_unique<df::net::Server>(of_task, options_of(job + "0"));
  }
  {
    df::Graph graph;
    const auto on = graph.device("/job:ps/task:0");
    df::Variable<float> w(graph, df::Tensor<float>(1.0f), {.name = "w"});
    const auto init = df::initialize_variables(graph);
    auto sum = w.read() + 1.0f;
    df::SessionOptions options;
    const df::net::ServerOptions of_client = options_of("client0");
    options.target = df::net::remote_master(spec, "/job:worker/task:0", {}, of_client);
    options.pool = options.callbacks = of_client.pool;
    options.clock = of_client.clock;
    options.incarnation = 1;
    df::Session session(graph, options);
    session.run(init);
    for (int round = 0; round < 5; ++round) {
      network.forget("client0", "worker0");
      sum = sum + 1.0f;  // the graph grows meanwhile
      float value = 0;
      const auto run = [&] { return status_of([&] { value = session.run(sum).scalar(); }); };
      df::Status status = run();
      if (status.code() == df::Code::unavailable) status = run();
      INFO(status.to_string());
      CHECK(status.ok());
      CHECK(value == static_cast<float>(3 + round));
    }
    // A partial run ends with its connection, and the next begins over a new one.
    const auto x = df::placeholder<float>(graph, {});
    const auto y = x + 1.0f;
    const auto z = y + x;
    for (int round = 0; round < 5; ++round) {
      float value = 0;
      const auto run_in_parts = [&](bool is_cut) {
        return status_of([&] {
          auto run = session.partial_run(df::feeds(x), df::fetches(y, z));
          if (is_cut) network.forget("client0", "worker0");
          value = run.feed(x, 1.0f).fetch(y).scalar();
          run.finish();
        });
      };
      CHECK(run_in_parts(true).code() == df::Code::unavailable);
      df::Status status;
      for (int attempt = 0; attempt < 3; ++attempt) {
        status = run_in_parts(false);
        if (status.ok()) break;
        simulation.run_for(100ms);
      }
      INFO(status.to_string());
      CHECK(status.ok());
      CHECK(value == 2);
    }
    // More often than a client may have sessions: the sessions of lost connections do not count.
    int num_failed = 0;
    for (int round = 0; round < 300; ++round) {
      network.forget("client0", "worker0");
      df::Status status;
      for (int attempt = 0; attempt < 3; ++attempt) {
        status = status_of([&] { session.run(sum); });
        if (status.ok()) break;
        simulation.run_for(100ms);
      }
      if (!status.ok()) ++num_failed;
    }
    CHECK(num_failed == 0);
  }
  servers.clear();
  simulation.run_for(1s);
}

TEST_CASE("a session whose connection was replaced ends at its remote master, too") {
  df::testing::SimulatedTasks tasks({"worker0"});
  const auto process = tasks.simulation.start("client0");
  df::net::ServerOptions of_client;
  of_client.clock = process->clock();
  of_client.transport = tasks.network.transport(process);
  of_client.random = [&] { return tasks.simulation.random(); };
  of_client.log = [](std::string_view) {};
  {
    df::Graph graph;
    const auto x = df::placeholder<float>(graph, {});
    const auto y = x + 1.0f;
    df::SessionOptions options;
    options.target = df::net::remote_master(tasks.spec, "/job:worker/task:0", {}, of_client);
    options.pool = options.callbacks = process->pool();
    options.clock = process->clock();
    options.incarnation = 1;
    df::Session stays(graph, options);
    const auto run_again = [&] {
      df::Status status;
      for (int attempt = 0; attempt < 3; ++attempt) {
        status = status_of([&] { stays.run({{x, df::Tensor<float>(1.0f)}}, y); });
        if (status.ok()) break;
        tasks.simulation.run_for(100ms);
      }
      return status;
    };
    // More often than a client may have sessions.
    int num_failed = 0;
    for (int round = 0; round < 300; ++round) {
      const df::Status status = status_of([&] {
        const df::Session ends(graph, options);
        tasks.network.forget("client0", "worker0");
        df::throw_if_error(run_again());
      });
      if (!status.ok()) ++num_failed;
    }
    CHECK(num_failed == 0);
  }
  tasks.simulation.run_for(1s);
}
