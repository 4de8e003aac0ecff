// How long the maker of a session waits for tasks that have not come.
#include <dflow/net/tasks/peers.hpp>

#include "catch.hpp"
#include "simulated_tasks.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;
using namespace std::chrono_literals;
using df::testing::SimulatedTasks;
using df::testing::StepEnd;

namespace {

/// x + 1 on "ps0".
struct OnePart {
  OnePart() {
    const auto on = graph.device("/job:ps/task:0");
    x = df::placeholder<float>(graph, {});
    result = x + 1.0f;
  }
  df::Graph graph;
  df::Output<float> x, result;
};

constexpr auto startup_timeout = 60s;  // the default of a server

}  // namespace

TEST_CASE("who waits for a task that does not come waits until the deadline, and little longer", "[net]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    SimulatedTasks tasks({"ps0", "worker0"}, seed);
    const OnePart part;
    tasks.processes.at("ps0")->crash();
    const auto begun = tasks.simulation.now();
    const df::Status status = status_of([&] { tasks.session(part.graph, "worker0"); });
    INFO(status.to_string());
    CHECK(status.code() == df::Code::unavailable);
    CHECK(tasks.simulation.now() >= begun + startup_timeout);
    CHECK(tasks.simulation.now() < begun + startup_timeout + 1s);
  }
}

TEST_CASE("of many tasks that do not come the log names eight, and says how many others there are", "[net]") {
  const auto line_of = [](std::size_t num_late) {
    std::vector<std::string> names{"worker0"};
    for (std::size_t i = 0; i < num_late; ++i) names.push_back(std::string(1, static_cast<char>('a' + i)) + "0");
    SimulatedTasks tasks(names);
    for (std::size_t i = 0; i < num_late; ++i) tasks.processes.at(names[i + 1])->crash();
    const df::Graph graph;
    CHECK(code_of([&] { return tasks.session(graph, "worker0"); }) == df::Code::unavailable);
    const auto found = std::find_if(tasks.log.begin(), tasks.log.end(), [](const std::string& line) {
      return line.find("a session has waited for 2 s for ") != std::string::npos;
    });
    return found == tasks.log.end() ? std::string() : found->substr(found->find("for 2 s"));
  };
  std::string eight;
  for (char job = 'a'; job <= 'h'; ++job) {
    eight += (job == 'a' ? "" : ", ") + ("/job:" + std::string(1, job)) + "/replica:0/task:0 (" + job + "0)";
  }
  CHECK(line_of(8) == "for 2 s for 8 of 8 other tasks: " + eight);
  CHECK(line_of(10) == "for 2 s for 10 of 10 other tasks: " + eight + " and 2 others");
}

TEST_CASE("who waits for a task goes on when another one, who tried once at the same time, has failed", "[net]") {
  SimulatedTasks tasks({"ps0", "worker0"});
  const OnePart part;
  const auto session = tasks.session(part.graph, "worker0");
  CHECK(session->run({{part.x, df::Tensor<float>(1.0f)}}, part.result).scalar() == 2);
  tasks.servers.erase("ps0");
  tasks.processes.at("ps0")->crash();
  tasks.simulation.run_for(1s);
  tasks.network.block("worker0", "ps0");
  StepEnd once;
  session->run_async({{part.x, df::Tensor<float>(1.0f)}}, part.result, once.callback());
  tasks.simulation.run_for(10ms);
  CHECK_FALSE(once.has_come());
  tasks.simulation.schedule_after(20s, [&] {
    CHECK(once.has_come());
    tasks.network.heal();
    tasks.start("ps0", "ps0");
  });
  const auto later = tasks.session(part.graph, "worker0");
  CHECK(later->run({{part.x, df::Tensor<float>(1.0f)}}, part.result).scalar() == 2);
}
