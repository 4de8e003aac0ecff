// Collectives between tasks of a cluster.
#include <dflow/ops/collective/collective.hpp>

#include "support/collective_members.hpp"

#include <dflow/dflow.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include "../../tools/free_addresses.hpp"
#include "catch.hpp"
#include "cluster_harness.hpp"
#include "simulation/simulated_tasks.hpp"
#include "support/errors.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;
using namespace std::chrono_literals;
using namespace df::testing;

namespace {

std::vector<std::string> worker_devices(int count) {
  std::vector<std::string> devices;
  for (int i = 0; i < count; ++i) devices.push_back(df::str_cat("/job:worker/task:", i));
  return devices;
}

/// Workers that listen on ports of this machine.
class TcpWorkers {
 public:
  explicit TcpWorkers(int count) {
    const auto transport =
        std::make_shared<df::net::AsioTransport>(df::net::AsioTransportOptions{.uses_local_sockets = false});
    df::net::ClusterSpec spec;
    spec.set_secret("the secret of a test");
    const std::vector<std::string> addresses = df::launch::free_addresses(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) spec.add_task("worker", i, addresses[static_cast<std::size_t>(i)]);
    for (int i = 0; i < count; ++i) {
      spec.set_task("worker", i);
      servers_.push_back(std::make_unique<df::net::Server>(
          spec, df::net::ServerOptions{.num_threads = 2, .transport = transport, .startup_timeout = 20s}));
    }
  }
  std::shared_ptr<df::SessionTarget> target(int task) { return servers_[static_cast<std::size_t>(task)]->target(); }

 private:
  std::vector<std::unique_ptr<df::net::Server>> servers_;
};

/// "a0", "b0" and "c0" each hold 1.5 times the fed value, and the session belongs to "chief0".
struct SimulatedMembers {
  explicit SimulatedMembers(std::int64_t size) {
    x = df::placeholder<float>(graph, {size});
    std::vector<df::Output<float>> values;
    for (const char* job : {"a", "b", "c"}) {
      const auto on = graph.device(df::str_cat("/job:", job, "/task:0"));
      values.push_back(x * 1.5f);
    }
    sums = df::all_reduce(values);
  }
  df::Tensor<float> fed() const { return df::Tensor<float>::full(x.shape().to_shape(), 2); }

  df::Graph graph;
  df::Output<float> x;
  std::vector<df::Output<float>> sums;
};

}  // namespace

TEST_CASE("collectives between tasks give the values of one process, in memory and over TCP", "[net][collective]") {
  for (const bool is_tcp : {false, true}) {
    for (const int count : {2, 3}) {
      std::unique_ptr<TcpWorkers> by_tcp;
      std::unique_ptr<MemoryCluster> in_memory;
      if (is_tcp) by_tcp = std::make_unique<TcpWorkers>(count);
      if (!is_tcp)
        in_memory = std::make_unique<MemoryCluster>(std::vector<std::pair<std::string, int>>{{"worker", count}});
      INFO(count << " tasks, " << (is_tcp ? "TCP" : "memory"));
      df::Graph graph;
      const auto devices = worker_devices(count);
      std::vector<Members<float>> members;
      for (const df::Shape& shape : {df::Shape{3}, df::Shape{7, 9001}, df::Shape{0}}) {
        for (const bool is_static : {true, false}) members.emplace_back(graph, devices, shape, is_static);
      }
      const Members<std::string> texts(graph, devices, df::Shape{2, 2});
      for (int task = 0; task < count; ++task) {
        df::Session session(graph,
                            {.target = is_tcp ? by_tcp->target(task) : in_memory->server("worker", task).target()});
        for (const Members<float>& each : members) {
          for (const df::ReduceBy reduction : all_reductions) {
            const auto wanted = reduced(each.tensors, reduction);
            for (const auto& result : results_of(session, each.feeds(), df::all_reduce(each.values, reduction))) {
              CHECK(are_equal(result, wanted));
            }
          }
          const auto rows = gathered(each.tensors);
          for (const auto& result : results_of(session, each.feeds(), df::all_gather(each.values))) {
            CHECK(are_equal(result, rows));
          }
          const auto copies = df::broadcast_to_devices(each.values[1], devices);
          for (const auto& copy : results_of(session, each.feeds(), copies)) CHECK(are_equal(copy, each.tensors[1]));
        }
        for (const auto& result : results_of(session, texts.feeds(), df::all_gather(texts.values))) {
          CHECK(are_equal(result, gathered(texts.tensors)));
        }
      }
    }
  }
}

TEST_CASE("collectives run in loops over tasks, whose gradients are theirs", "[net][collective]") {
  MemoryCluster cluster({{"worker", 3}});
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {20000});
  const auto n = df::placeholder<std::int32_t>(graph, {});
  const auto [last, power] =
      df::while_loop([&](auto i, auto) { return i < n; },
                     [&](auto i, auto v) {
                       std::vector<df::Output<float>> values;
                       for (int task = 0; task < 3; ++task) {
                         const auto on = graph.device(df::str_cat("/job:worker/task:", task));
                         values.push_back(v * static_cast<float>(task + 1));
                       }
                       return std::tuple{i + 1, df::Output<float>(df::all_reduce(values)[2] * 0.5f)};
                     },
                     std::tuple{df::constant(graph, 0), x});
  const auto dx = df::Output<float>(df::gradients(df::Output<float>(power), x));
  df::Session session(graph, {.target = cluster.server("worker", 1).target()});
  for (int run = 0; run < 3; ++run) {
    const std::vector<df::Feed> feeds{{x, df::Tensor<float>::full({20000}, 2)}, {n, df::Tensor<std::int32_t>(3)}};
    const auto got = results_of(session, feeds, std::vector<df::Output<float>>{power, dx});
    CHECK(got[0](19999) == 54);
    CHECK(got[1](0) == 27);
  }
}

TEST_CASE("a member that does not come ends with the deadline of the step, and the next step is whole",
          "[net][collective]") {
  for (const std::int64_t size : {std::int64_t{2}, std::int64_t{40000}}) {
    MemoryCluster cluster({{"worker", 3}});
    df::Graph graph;
    const Members<float> members(graph, worker_devices(3), df::Shape{size});
    auto values = members.values;
    std::unique_ptr<df::FifoQueue<float>> queue;
    df::Operation put;
    {
      const auto on = graph.device("/job:worker/task:2");
      queue =
          std::make_unique<df::FifoQueue<float>>(graph, df::QueueOptions{.capacity = 4, .shapes = {df::Shape{size}}});
      put = queue->enqueue(members.values[2]);
      values[2] = queue->dequeue();
    }
    const auto sums = df::all_reduce(values);
    df::Session session(graph, {.target = cluster.server("worker", 0).target()});
    const auto feeds = members.feeds();
    CHECK(code_of([&] {
            return session.run({.deadline = 50ms},
                               {{members.fed[0], members.tensors[0]}, {members.fed[1], members.tensors[1]}}, sums[0]);
          }) == df::Code::deadline_exceeded);
    session.run({{members.fed[2], members.tensors[2]}}, put);
    const auto got =
        results_of(session, {{members.fed[0], members.tensors[0]}, {members.fed[1], members.tensors[1]}}, sums);
    for (const auto& result : got) CHECK(are_equal(result, reduced(members.tensors, df::ReduceBy::sum)));
  }
}

TEST_CASE("an error in one member ends the step of all and names it", "[net][collective]") {
  MemoryCluster cluster({{"worker", 3}});
  df::Graph graph;
  const Members<float> members(graph, worker_devices(3), {df::Shape{2}, df::Shape{2}, df::Shape{3}}, false);
  const auto sums = df::all_reduce(members.values);
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  const df::Status status = status_of([&] { return results_of(session, members.feeds(), sums).size(); });
  INFO(status.to_string());
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(mentions(status, "[2]"));
  CHECK(mentions(status, "[3]"));
}

TEST_CASE("collectives of a simulated cluster end when a task is lost, and name it", "[net][collective]") {
  for (const std::int64_t size : {std::int64_t{2}, std::int64_t{40000}}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      INFO("seed " << seed << ", " << size << " elements");
      SimulatedTasks tasks({"a0", "b0", "c0", "chief0"}, seed);
      const SimulatedMembers members(size);
      const auto session = tasks.session(members.graph, "chief0");
      CHECK(session->run({{members.x, members.fed()}}, members.sums[0])(0) == 9);
      tasks.network.block("a0", "b0");
      tasks.network.block("b0", "a0");
      StepEnd end;
      session->run_async({{members.x, members.fed()}}, members.sums[0], end.callback());
      tasks.simulation.run_for(500ms);
      CHECK_FALSE(end.has_come());
      tasks.processes.at("b0")->crash();
      REQUIRE(tasks.simulation.run_until([&] { return end.has_come(); }, tasks.simulation.after(60s)));
      const df::Status& status = end.status->value();
      INFO(status.to_string());
      CHECK(status.code() == df::Code::unavailable);
      CHECK(mentions(status, "/job:b/replica:0/task:0"));
    }
  }
}

TEST_CASE("collectives of a simulated cluster end when they are stopped", "[net][collective]") {
  for (const std::int64_t size : {std::int64_t{2}, std::int64_t{40000}}) {
    SimulatedTasks tasks({"a0", "b0", "c0", "chief0"});
    const SimulatedMembers members(size);
    const auto session = tasks.session(members.graph, "chief0");
    tasks.network.block("a0", "c0");
    tasks.network.block("c0", "a0");
    std::stop_source stop;
    StepEnd end;
    session->run_async({.stop = stop.get_token()}, {{members.x, members.fed()}}, members.sums[0], end.callback());
    tasks.simulation.run_for(500ms);
    CHECK_FALSE(end.has_come());
    stop.request_stop();
    REQUIRE(tasks.simulation.run_until([&] { return end.has_come(); }, tasks.simulation.after(10s)));
    CHECK(end.status->value().code() == df::Code::cancelled);
  }
}

TEST_CASE(
    "collectives of a simulated cluster end with their deadline where the network is cut, and run when it is whole",
    "[net][collective]") {
  SimulatedTasks tasks({"a0", "b0", "c0", "chief0"});
  const SimulatedMembers members(40000);
  const auto session = tasks.session(members.graph, "chief0");
  for (int round = 0; round < 3; ++round) {
    CHECK(session->run({{members.x, members.fed()}}, members.sums[round])(39999) == 9);
    tasks.network.block("b0", "c0");
    StepEnd end;
    session->run_async({.deadline = 2s}, {{members.x, members.fed()}}, members.sums[0], end.callback());
    REQUIRE(tasks.simulation.run_until([&] { return end.has_come(); }, tasks.simulation.after(10s)));
    CHECK(end.status->value().code() == df::Code::deadline_exceeded);
    tasks.network.heal();
    tasks.simulation.run_for(1s);
  }
}

TEST_CASE("a thousand steps with collectives leave nothing in the tasks", "[net][collective]") {
  MemoryCluster cluster({{"worker", 3}});
  df::Graph graph;
  const Members<float> members(graph, worker_devices(3), df::Shape{20000});
  const auto sums = df::all_reduce(members.values);
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  const auto wanted = reduced(members.tensors, df::ReduceBy::sum);
  int wrong = 0;
  for (int run = 0; run < 1000; ++run) {
    for (const auto& result : results_of(session, members.feeds(), sums)) wrong += !are_equal(result, wanted);
  }
  CHECK(wrong == 0);
}
