// A task sends tensors to another task unasked, and the connection is lost before the other task reads them.
#include <dflow/net/tasks/step_table.hpp>

#include "catch.hpp"
#include "simulated_tasks.hpp"
#include "support/errors.hpp"

#include <chrono>
#include <vector>

namespace df = dflow;
using namespace std::chrono_literals;
using df::testing::SimulatedTasks;
using df::testing::StepEnd;

namespace {

/// "b0" reads the tensor that "a0" computes; the session belongs to "chief0".
struct TwoParts {
  TwoParts() {
    x = df::placeholder<float>(graph, {});
    const auto there = [&](const std::string& device, const df::Output<float>& value) {
      const auto on = graph.device(device);
      return value + 1.0f;
    };
    result = there("/job:b/task:0", there("/job:a/task:0", x));
  }
  df::Graph graph;
  df::Output<float> x, result;
};

/// There is no deadline: the tasks must notice the loss.
void ends_as_lost(SimulatedTasks& tasks, const StepEnd& end) {
  REQUIRE(tasks.simulation.run_until([&] { return end.has_come(); }, tasks.simulation.after(30s)));
  const df::Status& status = end.status->value();
  INFO(status.to_string());
  CHECK(status.code() == df::Code::unavailable);
  CHECK((mentions(status, "/job:a/replica:0/task:0") || mentions(status, "/job:b/replica:0/task:0")));
}

}  // namespace

TEST_CASE("a step ends when what one task has pushed to another, which waits, is lost between them", "[net]") {
  SimulatedTasks tasks({"a0", "b0", "chief0"});
  const TwoParts parts;
  const auto session = tasks.session(parts.graph, "chief0");
  for (int round = 0; round < 3; ++round) {
    CHECK(session->run({{parts.x, df::Tensor<float>(1.0f)}}, parts.result).scalar() == 3);
    tasks.network.block("a0", "b0");
    StepEnd end;
    session->run_async({{parts.x, df::Tensor<float>(1.0f)}}, parts.result, end.callback());
    tasks.simulation.run_for(500ms);
    CHECK_FALSE(end.has_come());  // the tensor is under way
    tasks.network.reset("a0", "b0");
    ends_as_lost(tasks, end);
    tasks.network.heal();
    tasks.simulation.run_for(1s);
  }
  CHECK(session->run({{parts.x, df::Tensor<float>(1.0f)}}, parts.result).scalar() == 3);
}

TEST_CASE("a step ends also where the task that the lost tensor was for begins its part only then", "[net]") {
  const bool can_be_told = GENERATE(true, false);  // at once; else after more time than one attempt to connect takes
  SimulatedTasks tasks({"a0", "b0", "chief0"});
  const TwoParts parts;
  const auto session = tasks.session(parts.graph, "chief0");
  for (int round = 0; round < 3; ++round) {
    CHECK(session->run({{parts.x, df::Tensor<float>(1.0f)}}, parts.result).scalar() == 3);
    tasks.network.block("a0", "b0");
    if (!can_be_told) tasks.network.block("b0", "a0");
    tasks.network.block("chief0", "b0");
    StepEnd end;
    session->run_async({{parts.x, df::Tensor<float>(1.0f)}}, parts.result, end.callback());
    tasks.simulation.run_for(500ms);
    tasks.network.reset("a0", "b0");
    if (can_be_told) tasks.network.unblock("a0", "b0");
    tasks.simulation.run_for(can_be_told ? 1s : 7s);
    CHECK_FALSE(end.has_come());
    tasks.network.heal();
    ends_as_lost(tasks, end);
  }
  CHECK(session->run({{parts.x, df::Tensor<float>(1.0f)}}, parts.result).scalar() == 3);
}

TEST_CASE("a step ends also when the task that has a tensor for another cannot reach it", "[net]") {
  SimulatedTasks tasks({"a0", "b0", "chief0"});
  const TwoParts parts;
  const auto session = tasks.session(parts.graph, "chief0");
  tasks.network.block("a0", "b0");  // they have no connection that could be lost
  StepEnd end;
  session->run_async({{parts.x, df::Tensor<float>(1.0f)}}, parts.result, end.callback());
  tasks.simulation.run_for(12s);
  CHECK_FALSE(end.has_come());
  tasks.network.heal();
  ends_as_lost(tasks, end);
  CHECK(session->run({{parts.x, df::Tensor<float>(1.0f)}}, parts.result).scalar() == 3);
}

TEST_CASE("a step ends also when the task that a tensor is for has been started anew, and the sender did not know",
          "[net]") {
  SimulatedTasks tasks({"a0", "b0", "chief0"});
  const TwoParts parts;
  CHECK(tasks.session(parts.graph, "chief0")->run({{parts.x, df::Tensor<float>(1.0f)}}, parts.result).scalar() == 3);
  tasks.network.power_off(*tasks.processes.at("b0"));
  tasks.servers.erase("b0");
  tasks.simulation.run_for(100ms);
  tasks.start("b0", "b0");
  tasks.network.reset("chief0", "b0");
  tasks.simulation.run_for(10ms);
  const auto session = tasks.session(parts.graph, "chief0");
  StepEnd end;
  session->run_async({{parts.x, df::Tensor<float>(1.0f)}}, parts.result, end.callback());
  ends_as_lost(tasks, end);
  CHECK(session->run({{parts.x, df::Tensor<float>(1.0f)}}, parts.result).scalar() == 3);
}

TEST_CASE("a thousand steps end whose tensors were lost together, before their parts began", "[net]") {
  SimulatedTasks tasks({"a0", "b0", "chief0"});
  const TwoParts parts;
  const auto session = tasks.session(parts.graph, "chief0");
  CHECK(session->run({{parts.x, df::Tensor<float>(1.0f)}}, parts.result).scalar() == 3);
  tasks.network.block("a0", "b0");
  tasks.network.block("chief0", "b0");
  std::vector<StepEnd> ends(1000);
  for (const StepEnd& end : ends) {
    session->run_async({{parts.x, df::Tensor<float>(1.0f)}}, parts.result, end.callback());
  }
  tasks.simulation.run_for(500ms);
  tasks.network.reset("a0", "b0");
  tasks.network.unblock("a0", "b0");
  tasks.simulation.run_for(1s);
  tasks.network.unblock("chief0", "b0");
  for (const StepEnd& end : ends) ends_as_lost(tasks, end);
}

TEST_CASE("who looks for tasks that are not there is told when its own task is stopped", "[net]") {
  SimulatedTasks tasks({"a0", "b0", "chief0"});
  const TwoParts parts;
  tasks.processes.at("a0")->crash();
  const auto begun = tasks.simulation.now();
  tasks.simulation.schedule_after(1s, [&] { tasks.servers.at("chief0")->stop(); });
  const df::Status status = status_of([&] { tasks.session(parts.graph, "chief0"); });
  INFO(status.to_string());
  CHECK_FALSE(status.ok());
  CHECK(tasks.simulation.now() < begun + 10s);
}
