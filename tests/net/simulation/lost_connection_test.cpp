// Tests of servers when a connection is lost and one side or the other does not know it yet.
#include <dflow/core/memory/pool_allocator.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/simulation/simulated_network.hpp>

#include "catch.hpp"
#include "support/end_when_cancelled.hpp"
#include "support/errors.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace df = dflow;
using namespace std::chrono_literals;

namespace {

/// Ends when its step is cancelled.
struct Parked : df::Op<"Parked", df::TypeList<float>> {
  static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto parked_ops = df::standard_ops + df::ops<Parked>;
struct ParkedRuns {
  int begun = 0, ended = 0;
};
constinit thread_local ParkedRuns parked;

/// "ps0" and "worker0" in a simulation, and a session of the worker.
struct SimulatedPsAndWorker {
  explicit SimulatedPsAndWorker(std::uint64_t seed = 1) : simulation(seed), network(simulation) {
    parked = {};
    spec.add_task("ps", 0, "ps0");
    spec.add_task("worker", 0, "worker0");
    start("ps");
    start("worker");
    const auto on = graph.device("/job:ps/task:0");
    x = df::placeholder<float>(graph, {});
    doubled = x * 2.0f;
    large = df::fill({1 << 19}, x);
    parks = df::apply<Parked>(x);
    df::SessionOptions options;
    options.ops = parked_ops;
    options.target = servers.at("worker")->target();
    options.clock = processes.at("worker")->clock();
    options.callbacks = processes.at("worker")->pool();
    options.incarnation = 1;
    session = std::make_unique<df::Session>(graph, options);
  }
  ~SimulatedPsAndWorker() {
    session = nullptr;
    servers.clear();
    simulation.run_for(1s);
  }

  void start(const std::string& job) {
    processes[job] = simulation.start(job + "0");
    df::net::ServerOptions options;
    options.ops = parked_ops;
    options.pool = processes[job]->pool();
    options.clock = processes[job]->clock();
    options.transport = network.transport(processes[job]);
    options.random = options.draw_seed = [this] { return simulation.random(); };
    options.log = [](std::string_view) {};
    df::net::ClusterSpec of_task = spec;
    of_task.set_task(job, 0);
    servers[job] = std::make_unique<df::net::Server>(of_task, options);
  }

  df::Status run() {
    try {
      return session->run({{x, df::Tensor<float>(4.0f)}}, doubled).scalar() == 8
                 ? df::Status()
                 : df::Status::internal("a wrong result");
    } catch (const df::Error& error) {
      return error.status();
    }
  }

  df::net::Simulation simulation;
  df::net::SimulatedNetwork network;
  df::net::ClusterSpec spec;
  std::map<std::string, std::shared_ptr<df::net::SimulatedProcess>> processes;
  std::map<std::string, std::unique_ptr<df::net::Server>> servers;
  df::Graph graph;
  df::Output<float> x, doubled, large, parks;
  std::unique_ptr<df::Session> session;
};

/// A transport that refuses every connection.
class RefusingTransport final : public df::net::Transport {
 public:
  class RefusingListener final : public df::net::Listener {
   public:
    RefusingListener(std::shared_ptr<df::net::SimulatedProcess> process, int& num_asked)
        : process_(std::move(process)), num_asked_(num_asked) {}
    void accept(std::unique_ptr<df::net::Stream>&, df::Completion done) override {
      ++num_asked_;
      process_->schedule_after(
          0s, [done = std::move(done)]() mutable { done(df::Status::resource_exhausted("no files")); });
    }
    void close() noexcept override {}
    std::string address() const override { return "here"; }

   private:
    const std::shared_ptr<df::net::SimulatedProcess> process_;
    int& num_asked_;
  };

  explicit RefusingTransport(std::shared_ptr<df::net::SimulatedProcess> process) : process_(std::move(process)) {}
  std::unique_ptr<df::net::Listener> listen(const std::string&) override {
    return std::make_unique<RefusingListener>(process_, num_asked);
  }
  void connect(const std::string&, df::Clock::time_point, std::unique_ptr<df::net::Stream>&, df::Completion) override {}

  int num_asked = 0;

 private:
  const std::shared_ptr<df::net::SimulatedProcess> process_;
};

}  // namespace

template <>
struct dflow::Kernel<Parked, dflow::Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    ++parked.begun;
    end_when_cancelled(context, [done = std::move(done)](const Status& why) mutable {
      ++parked.ended;
      done(why);
    });
  }
};

TEST_CASE("a step of a session runs again when a task has not noticed yet that the connection was lost", "[net]") {
  SimulatedPsAndWorker cluster;
  REQUIRE(cluster.run().ok());
  for (int round = 0; round < 3; ++round) {
    cluster.network.forget("worker0", "ps0");
    df::Status status = cluster.run();
    if (status.code() == df::Code::unavailable) status = cluster.run();
    INFO(status.to_string());
    CHECK(status.ok());
  }
}

TEST_CASE("a step that a task has forgotten with a lost connection is told Unavailable", "[net]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    SimulatedPsAndWorker cluster(seed);
    const df::Tensor<float> one(1.0f);
    cluster.session->run({{cluster.x, one}}, cluster.large);  // opens the connection for large tensors
    int num_done = 0;
    df::Status last;
    const auto run = [&] {
      cluster.session->run_async({{cluster.x, one}}, cluster.doubled,
                                 [&](const df::Status& status, const df::Tensor<float>&) {
                                   CHECK((status.ok() || status.code() == df::Code::unavailable));
                                   last = status;
                                   ++num_done;
                                 });
    };
    // No new connection can be made, until the step goes over the one for large tensors that is left.
    cluster.network.block("ps0", "worker0");
    cluster.network.forget("worker0", "ps0", 0.5);
    for (int i = 0; i < 4; ++i) {
      run();
      cluster.simulation.run_for(4s + std::chrono::milliseconds(cluster.simulation.random_below(2000)));
      if (i == 1) cluster.network.heal();
    }
    REQUIRE(cluster.simulation.run_until([&] { return num_done == 4; }, cluster.simulation.after(100s)));
    for (int i = 0; i < 4 && (i == 0 || !last.ok()); ++i) {
      run();
      REQUIRE(cluster.simulation.run_until([&] { return num_done == 5 + i; }, cluster.simulation.after(100s)));
    }
    CHECK(last.ok());
  }
}

TEST_CASE("a run ends in another task when the connection that it was asked for over is lost", "[net]") {
  SimulatedPsAndWorker cluster;
  for (int round = 1; round <= 3; ++round) {
    df::Code code = df::Code::ok;
    cluster.session->run_async({{cluster.x, df::Tensor<float>(1.0f)}}, cluster.parks,
                               [&](const df::Status& status, const df::Tensor<float>&) { code = status.code(); });
    const auto begun = [&] { return parked.begun == round; };
    REQUIRE(cluster.simulation.run_until(begun, cluster.simulation.after(10s)));
    cluster.network.forget("worker0", "ps0");
    const auto has_ended = [&] { return code == df::Code::unavailable; };
    REQUIRE(cluster.simulation.run_until(has_ended, cluster.simulation.after(10s)));
    CHECK(parked.ended == round - 1);
    // The session goes on over a new connection, because its task is not gone.
    CHECK(cluster.run().ok());
    const auto has_ended_there = [&] { return parked.ended == round; };
    CHECK(cluster.simulation.run_until(has_ended_there, cluster.simulation.after(60s)));
    CHECK(cluster.run().ok());
  }
}

TEST_CASE("a server that has stopped keeps nothing", "[net]") {
  df::net::Simulation simulation(1);
  df::net::SimulatedNetwork network(simulation);
  const auto process = simulation.start("ps0");
  for (int round = 0; round < 3; ++round) {
    df::net::ServerOptions options;
    options.pool = process->pool();
    options.clock = process->clock();
    options.allocator = std::make_shared<df::PoolAllocator>(df::default_cpu_allocator());
    options.transport = network.transport(process);
    df::net::ClusterSpec spec;
    spec.add_task("ps", 0, "ps0");
    spec.set_task("ps", 0);
    const std::weak_ptr<df::Allocator> allocator = options.allocator;
    const std::weak_ptr<df::net::Transport> transport = options.transport;
    {
      const df::net::Server server(spec, std::exchange(options, {}));
      simulation.run_for(1s);
      CHECK_FALSE(allocator.expired());
    }
    simulation.run_for(1s);
    CHECK(allocator.expired());
    CHECK(transport.expired());
  }
}

TEST_CASE("a server that cannot accept connections tries again after a while, and does not spin", "[net]") {
  df::net::Simulation simulation(1);
  const auto process = simulation.start("ps0");
  const auto transport = std::make_shared<RefusingTransport>(process);
  df::net::ServerOptions options;
  options.pool = process->pool();
  options.clock = process->clock();
  options.transport = transport;
  options.random = options.draw_seed = [&] { return simulation.random(); };
  int lines = 0;
  options.log = [&](std::string_view line) { lines += contains(line, "could not be accepted") ? 1 : 0; };
  options.callbacks = std::make_shared<df::InlinePool>();
  df::net::ClusterSpec spec;
  spec.add_task("ps", 0, "here");
  spec.set_task("ps", 0);
  {
    df::net::Server server(spec, options);
    simulation.run_for(1s);
    CHECK(transport->num_asked > 1);
    CHECK(transport->num_asked < 20);
    CHECK(lines > 0);
  }
  const int asked = transport->num_asked;
  simulation.run_for(1s);
  CHECK(transport->num_asked == asked);
}
