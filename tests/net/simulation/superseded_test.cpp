// Messages over a connection that the sender has lost, or from a start of a task that a newer start has replaced.
#include <dflow/net/tasks/peers.hpp>

#include "catch.hpp"
#include "simulated_tasks.hpp"
#include "support/errors.hpp"

#include <chrono>
#include <memory>

namespace df = dflow;
using namespace std::chrono_literals;
using df::testing::SimulatedTasks;
using df::testing::StepEnd;

namespace {

/// A variable on "ps0" that sessions of other tasks set.
struct SharedValue {
  SharedValue() {
    const auto on = graph.device("/job:ps/task:0");
    x = df::placeholder<float>(graph, {});
    w.emplace(graph, df::Tensor<float>(0.0f), df::VariableOptions{.name = "w"});
    set = w->assign(x);
    read = w->read();
  }
  df::Status write(df::Session& session, float value) const {
    return status_of([&] { session.run({{x, df::Tensor<float>(value)}}, set); });
  }

  df::Graph graph;
  df::Output<float> x;
  std::optional<df::Variable<float>> w;
  df::Operation set;
  df::Output<float> read;
};

}  // namespace

TEST_CASE("what was asked over a connection is not done once its client has connected again", "[net]") {
  SimulatedTasks tasks({"ps0", "worker0"});
  const SharedValue shared;
  const auto session = tasks.session(shared.graph, "worker0");
  REQUIRE(shared.write(*session, 1).ok());
  for (int round = 0; round < 5; ++round) {
    df::net::SimulatedLink slow;
    slow.min_delay = slow.max_delay = 1s;
    tasks.network.set_link(slow);
    StepEnd late;
    session->run_async({{shared.x, df::Tensor<float>(-1.0f)}}, shared.set, late.callback());
    tasks.simulation.run_for(10ms);  // the request is on its way
    tasks.network.set_link({});
    tasks.network.forget("worker0", "ps0");
    REQUIRE(tasks.simulation.run_until([&] { return late.has_come(); }, tasks.simulation.after(10s)));
    CHECK(late.status->value().code() == df::Code::unavailable);
    REQUIRE(shared.write(*session, 2).ok());
    tasks.simulation.run_for(5s);  // it has arrived
    CHECK(session->run(shared.read).scalar() == 2);
  }
}

TEST_CASE("a task that was replaced and comes back writes nothing, and is told so", "[net]") {
  SimulatedTasks tasks({"ps0", "worker0"});
  const SharedValue shared;
  const auto old_session = tasks.session(shared.graph, "worker0");
  REQUIRE(shared.write(*old_session, 1).ok());
  tasks.network.block("worker0", "ps0");
  tasks.network.block("ps0", "worker0");
  StepEnd held_back;
  old_session->run_async({{shared.x, df::Tensor<float>(-1.0f)}}, shared.set, held_back.callback());
  tasks.simulation.run_for(1s);
  tasks.start("worker0", "elsewhere");
  const auto new_session = tasks.session(shared.graph, "elsewhere");
  REQUIRE(shared.write(*new_session, 2).ok());
  tasks.network.heal();
  REQUIRE(tasks.simulation.run_until([&] { return held_back.has_come(); }, tasks.simulation.after(30s)));
  CHECK_FALSE(held_back.status->value().ok());
  CHECK(new_session->run(shared.read).scalar() == 2);
  // A connection that the old start makes now does not let it write either.
  for (int i = 0; i < 3; ++i) {
    const df::Status status = shared.write(*old_session, -1);
    INFO(status.to_string());
    CHECK((status.code() == df::Code::aborted || status.code() == df::Code::unavailable));
  }
  CHECK(tasks.has_logged("/job:worker/replica:0/task:0 has been started anew since this one was started"));
  CHECK(new_session->run(shared.read).scalar() == 2);
  CHECK(shared.write(*new_session, 3).ok());
}

TEST_CASE("who has been started anew itself knows which start of another task is the later one", "[net]") {
  for (const bool later_comes_first : {true, false}) {
    SimulatedTasks tasks({"ps0", "worker0"});
    const SharedValue shared;
    tasks.simulation.run_for(1s);
    tasks.start("worker0", "elsewhere");
    tasks.servers.erase("ps0");
    tasks.processes.at("ps0")->crash();
    tasks.simulation.run_for(1s);
    tasks.start("ps0", "ps0");
    const std::string earlier = "worker0", later = "elsewhere";
    if (!later_comes_first) {
      const auto session = tasks.session(shared.graph, earlier);
      CHECK(shared.write(*session, -1).ok());  // nobody has heard of another start
    }
    const auto session = tasks.session(shared.graph, later);
    CHECK(shared.write(*session, 1).ok());
    const df::Status status = status_of([&] { tasks.session(shared.graph, earlier); });
    INFO(status.to_string());
    CHECK(status.code() == df::Code::aborted);
    CHECK(mentions(status, "has been started anew since this one was started"));
    CHECK(shared.write(*session, 2).ok());
    CHECK(session->run(shared.read).scalar() == 2);
  }
}

TEST_CASE("a task that is started anew at another address is asked for large tensors by what it has opened", "[net]") {
  SimulatedTasks tasks({"ps0", "worker0"});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  const auto sum = [&] {
    const auto on = graph.device("/job:ps/task:0");
    return df::reduce_sum(x);
  }();
  tasks.servers.erase("worker0");
  tasks.processes.at("worker0")->crash();
  tasks.start("worker0", "elsewhere");
  const auto session = tasks.session(graph, "elsewhere");
  CHECK(session->run({{x, df::Tensor<float>::full({100'000}, 1.0f)}}, sum).scalar() == 100'000);
}
