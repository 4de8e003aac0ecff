// Branches, loops and functions with calls in other tasks.
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#include "catch.hpp"
#include "cluster_harness.hpp"
#include "support/control_flow_programs.hpp"
#include "support/errors.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

void check_program(const df::testing::ControlFlowProgram& program, const df::DeviceFunction& device,
                   const df::SessionOptions& options) {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto n = df::placeholder<std::int32_t>(graph, {});
  const df::testing::ControlFlowResults results = [&] {
    const auto on = graph.device(device);
    return program.build(graph, x, n);
  }();
  df::Session session(graph, options);
  const df::Tensor<float> x_value(1.5f);
  const df::Tensor<std::int32_t> n_value(4);
  for (int run = 0; run < 3; ++run) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO(i);
      CHECK(session.run({{x, x_value}, {n, n_value}}, results[i]).scalar() == Approx(program.wanted[i]));
    }
  }
}

void check_program(const df::testing::ControlFlowProgram& program, const std::string& device,
                   const df::SessionOptions& options) {
  INFO(program.name << " on '" << device << "'");
  check_program(
      program, [&](const df::Node&) { return device; }, options);
}

/// Moves nodes by a draw: to one of the devices, or not at all. Nodes that call functions or hold lists are not moved.
df::DeviceFunction spread_over(std::vector<std::string> devices, std::size_t draw) {
  return [devices = std::move(devices), draw](const df::Node& node) {
    const bool is_plain = node.op->role == df::OpRole::ordinary && !node.op->is_stateful &&
                          node.op->name.find("List") == std::string_view::npos &&
                          node.op->name.find("Kept") == std::string_view::npos;
    const std::size_t i = std::hash<std::string>()(node.name + std::to_string(draw)) % (2 * devices.size());
    return is_plain && i < devices.size() ? devices[i] : std::string();
  };
}

}  // namespace

TEST_CASE("calls give the same in this process, on three devices and in each of three tasks") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  for (const df::testing::ControlFlowProgram& program : df::testing::control_flow_programs()) {
    check_program(program, "", {});
    for (int device = 0; device < 3; ++device) {
      check_program(program, "/cpu:" + std::to_string(device), {.num_cpu_devices = 3});
    }
    for (const char* task : {"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"}) {
      check_program(program, task, {.target = cluster.server("worker", 0).target()});
    }
  }
}

TEST_CASE("calls give the same with bodies over three devices and over three tasks", "[split]") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  for (const df::testing::ControlFlowProgram& program : df::testing::control_flow_programs()) {
    for (std::size_t draw = 0; draw < 8; ++draw) {
      INFO(program.name << ", draw " << draw);
      check_program(program, spread_over({"/cpu:0", "/cpu:1", "/cpu:2"}, draw), {.num_cpu_devices = 3});
      if (draw < 4) {
        check_program(program, spread_over({"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"}, draw),
                      {.target = cluster.server("worker", 0).target()});
      }
    }
  }
}

TEST_CASE("raw loops and branches give the same on one device, over three devices and over three tasks", "[split]") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  for (const df::testing::ControlFlowProgram& program : df::testing::raw_control_flow_programs()) {
    for (const bool raises : {false, true}) {
      df::PassOptions passes;
      passes.raise_control_flow = raises;
      check_program(program, "", {.passes = passes});
      for (const char* task : {"/job:ps/task:0", "/job:worker/task:0"}) {
        check_program(program, task, {.target = cluster.server("worker", 0).target(), .passes = passes});
      }
      for (std::size_t draw = 0; draw < 8; ++draw) {
        INFO(program.name << ", draw " << draw << ", raised: " << raises);
        check_program(program, spread_over({"/cpu:0", "/cpu:1", "/cpu:2"}, draw),
                      {.num_cpu_devices = 3, .passes = passes});
        if (draw < 4) {
          check_program(program, spread_over({"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"}, draw),
                        {.target = cluster.server("worker", 0).target(), .passes = passes});
        }
      }
    }
  }
}

TEST_CASE("programs in the raw form give the same over three devices and over three tasks", "[split]") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  df::PassOptions passes;
  passes.lower_control_flow = passes.raise_control_flow = true;  // control flow that spans devices is raised again
  for (const df::testing::ControlFlowProgram& program : df::testing::control_flow_programs()) {
    for (std::size_t draw = 0; draw < 6; ++draw) {
      INFO(program.name << ", draw " << draw);
      check_program(program, spread_over({"/cpu:0", "/cpu:1", "/cpu:2"}, draw),
                    {.num_cpu_devices = 3, .passes = passes});
      if (draw < 2) {
        check_program(program, spread_over({"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"}, draw),
                      {.target = cluster.server("worker", 0).target(), .passes = passes});
      }
    }
  }
}

TEST_CASE("a loop counts in a variable of a parameter server") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  const auto on_ps = [&] { return graph.device("/job:ps/task:0"); };
  const auto count = [&] {
    const auto on = on_ps();
    return df::Variable<float>(graph, df::constant(graph, 0.0f), {.name = "count"});
  }();
  auto last = df::while_loop([&](auto i) { return i < n; },
                             [&](auto i) {
                               const auto bump = count.assign_add(df::constant(graph, 2.0f));
                               const auto after = graph.control_dependencies({bump});
                               return i + 1;
                             },
                             df::constant(graph, 0));
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  session.run(df::initialize_variables(graph));
  for (int run = 1; run <= 3; ++run) {
    CHECK(session.run({{n, df::Tensor<std::int32_t>(5)}}, last).scalar() == 5);
    CHECK(session.run(count.read()).scalar() == static_cast<float>(10 * run));
  }
}

TEST_CASE("random numbers in a body of another task go on, and are not those of another node") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  const auto draws = [&](const df::SessionOptions& options, const std::string& device) {
    df::Graph graph({.seed = 3});
    auto x = df::placeholder<float>(graph, {});
    const auto on = graph.device(device);
    auto noisy = df::function(graph, "noisy", [&](df::Output<float> v) {
      auto noise = df::random_uniform<float>(graph, {});
      return v * df::exp(noise);
    });
    // More is kept of one call than of the other: their bodies differ, and draw random numbers by one node.
    auto y = noisy(x), z = noisy(x * 2.0f);
    auto gradient = df::gradients(y, x);
    df::Session session(graph, options);
    std::vector<float> values;
    for (int run = 0; run < 3; ++run) {
      values.push_back(session.run({{x, df::Tensor<float>(1.0f)}}, z).scalar());
      values.push_back(session.run({{x, df::Tensor<float>(1.0f)}}, gradient).scalar());
      const auto [a, b] = session.run({{x, df::Tensor<float>(1.0f)}}, gradient, y);
      CHECK(a.scalar() == Approx(b.scalar()));
      values.push_back(a.scalar());
    }
    return values;
  };
  const std::vector<float> here = draws({}, "");
  CHECK(draws({.target = cluster.server("worker", 0).target()}, "/job:ps/task:0") == here);
  CHECK(here[0] != here[3]);
}

TEST_CASE("an error in a body of another task names the node, the task and the line it was built at") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  const auto on = graph.device("/job:ps/task:0");
  std::uint32_t line = 0;
  auto last = df::while_loop([&](auto i) { return i < n; },
                             [&](auto i) {
                               line = __LINE__ + 1;
                               auto rest = df::mod(n, i - 3, {.name = "rest"});
                               return i + 1 + rest * 0;
                             },
                             df::constant(graph, 0));
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  const df::Status status = status_of([&] { session.run({{n, df::Tensor<std::int32_t>(5)}}, last); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.node() == "while/body/rest");
  CHECK(status.task() == "/job:ps/replica:0/task:0");
  CHECK(status.where().line() == line);
  CHECK(session.run({{n, df::Tensor<std::int32_t>(3)}}, last).scalar() == 3);
}

TEST_CASE("a deadline and a stop end a loop in another task that would never end") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  const auto on = graph.device("/job:ps/task:0");
  auto endless = df::while_loop([&](auto i) { return i >= 0; }, [&](auto i) { return i * 1; }, df::constant(graph, 1));
  auto shorter =
      df::while_loop([&](auto i) { return i < 100'000; }, [&](auto i) { return i + 1; }, df::constant(graph, 1));
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  for (int run = 0; run < 3; ++run) {
    CHECK(code_of([&] { session.run({.deadline = std::chrono::milliseconds(20)}, {}, endless); }) ==
          df::Code::deadline_exceeded);
    CHECK(session.run(shorter).scalar() == 100'000);
  }
}

TEST_CASE("a loop at a worker counts in variables of two parameter servers", "[split]") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  const auto variable = [&](int task, float value) {
    const auto on = graph.device("/job:ps/task:" + std::to_string(task));
    return df::Variable<float>(graph, df::constant(graph, value), {.name = "at_" + std::to_string(task)});
  };
  const auto count = variable(0, 0.0f), scale = variable(1, 2.0f);
  const auto [i, y] = [&] {
    const auto on = graph.device("/job:worker/task:0");
    return df::while_loop([&](auto i, auto) { return i < n; },
                          [&](auto i, auto y) {
                            const auto bump = count.assign_add(df::constant(graph, 1.0f));
                            const auto after = graph.control_dependencies({bump});
                            return std::tuple{i + 1, df::Output<float>(y * scale.read())};
                          },
                          std::tuple{df::constant(graph, 0), df::constant(graph, 1.0f)});
  }();
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  session.run(df::initialize_variables(graph));
  float bumps = 0;
  for (int run = 0; run < 3; ++run) {
    for (const int iterations : {0, 1, 5}) {
      const df::Tensor<std::int32_t> times(iterations);
      CHECK(session.run({{n, times}}, y).scalar() == std::pow(2.0f, static_cast<float>(iterations)));
      bumps += static_cast<float>(iterations);
      CHECK(session.run(count.read()).scalar() == bumps);
    }
  }
}

TEST_CASE("a split loop over tasks ends with an error of another task's part, and runs again", "[split]") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto y = df::while_loop([&](auto v) { return v > 0.0f; },
                          [&](auto v) {
                            const auto on = graph.device("/job:ps/task:0");
                            return df::Output<float>(df::check_numerics(v * 1.5f, "too large"));
                          },
                          x);
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  for (int run = 0; run < 3; ++run) {
    CHECK(session.run({{x, df::Tensor<float>(-2.0f)}}, y).scalar() == -2);
    const df::Status status = status_of([&] { return session.run({{x, df::Tensor<float>(1.0f)}}, y); });
    CHECK(mentions(status, "too large"));
    CHECK(mentions(status, "job:ps"));
  }
}
