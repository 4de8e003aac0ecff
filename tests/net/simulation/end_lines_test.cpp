// The lines of a log about tasks that end, are lost, or are not let in.
#include <dflow/net/server.hpp>

#include <dflow/dflow.hpp>
#include <dflow/net/protocol/identity.hpp>

#include "catch.hpp"
#include "simulated_tasks.hpp"
#include "support/errors.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace df = dflow;
using namespace std::chrono_literals;
using df::testing::SimulatedTasks;

namespace {

constexpr std::string_view logged_ps = "/job:ps/replica:0/task:0", logged_worker = "/job:worker/replica:0/task:0";

/// A worker and a parameter server that a session of the worker uses.
struct LoggingPair {
  SimulatedTasks tasks{{"ps0", "worker0"}};
  df::Graph graph;
  df::Output<float> x = df::placeholder<float>(graph, {});
  df::Output<float> y = [this] {
    const auto on = graph.device("/job:ps/task:0");
    return x * 3.0f;
  }();
  std::unique_ptr<df::Session> session = tasks.session(graph, "worker0");

  LoggingPair() {
    CHECK(run().ok());
    tasks.log.clear();
  }
  df::Status run() {
    return status_of([&] { return session->run({{x, df::Tensor<float>(2.0f)}}, y); });
  }
  /// What that task has logged since.
  std::vector<std::string> lines_of(std::string_view task) const {
    std::vector<std::string> lines;
    for (const std::string& line : tasks.log) {
      if (line.starts_with(df::str_cat(task, ": "))) lines.push_back(line.substr(task.size() + 2));
    }
    return lines;
  }
};

using LoggedLines = std::vector<std::string>;

}  // namespace

TEST_CASE("a task that ends is one line in the log of another, which says that it has stopped", "[net]") {
  LoggingPair pair;
  pair.tasks.servers.erase("ps0");
  pair.tasks.simulation.run_for(1s);
  CHECK(pair.lines_of("worker0") == LoggedLines{df::str_cat(logged_ps, " has stopped")});
  CHECK(pair.run().code() == df::Code::unavailable);
  pair.session = nullptr;
}

TEST_CASE("a task that dies is one line in the log of another, with its name and the reason once", "[net]") {
  LoggingPair pair;
  pair.tasks.processes.at("ps0")->crash();
  pair.tasks.simulation.run_for(1s);
  CHECK(pair.lines_of("worker0") ==
        LoggedLines{df::str_cat("the connection with ", logged_ps, " is lost: the stream is closed")});
  pair.session = nullptr;
  pair.tasks.servers.erase("ps0");
}

TEST_CASE("a task that falls silent is one line in the log of another", "[net]") {
  LoggingPair pair;
  pair.tasks.network.block("worker0", "ps0");
  pair.tasks.network.block("ps0", "worker0");
  pair.tasks.simulation.run_for(12s);
  const LoggedLines lines = pair.lines_of("worker0");
  REQUIRE(lines.size() == 1);
  CHECK(contains(lines[0], df::str_cat(logged_ps, " has been silent for 10")));
  pair.session = nullptr;
}

TEST_CASE("a session that ends is no line of a log", "[net]") {
  LoggingPair pair;
  pair.session = nullptr;
  pair.tasks.simulation.run_for(1s);
  CHECK(pair.tasks.log.empty());
  pair.tasks.servers.erase("worker0");
  pair.tasks.simulation.run_for(1s);
  CHECK(pair.lines_of("ps0") == LoggedLines{df::str_cat(logged_worker, " has stopped")});
}

TEST_CASE("a start from the future locks no later start out, and the log speaks of the calendar", "[net]") {
  SimulatedTasks tasks({"ps0", "worker0"});
  df::Graph graph;
  const auto y = [&] {
    const auto on = graph.device("/job:ps/task:0");
    return df::constant(graph, 2.0f) * 3.0f;
  }();
  const auto now = tasks.processes.at("worker0")->clock()->wall_now();
  const auto restart = [&](std::uint64_t incarnation) {
    tasks.servers.erase("worker0");
    tasks.simulation.run_for(1s);
    tasks.log.clear();
    tasks.start("worker0", "worker0", incarnation);
    return status_of([&] { return tasks.session(graph, "worker0")->run(y); });
  };
  CHECK(restart(0).ok());
  CHECK_FALSE(tasks.has_logged("calendar"));
  CHECK(restart(df::net::incarnation_at(now + 24h * 365, 1)).ok());
  CHECK(tasks.has_logged(df::str_cat("ps0: ", logged_worker, " was started 3153")));
  CHECK(tasks.has_logged("s in the future, by this machine's calendar: one of the two calendars is wrong"));
  CHECK(restart(0).ok());
  CHECK_FALSE(tasks.has_logged("calendar"));
  // A calendar that is less than a day ahead is believed. The next start waits until then, and is told why.
  CHECK(restart(df::net::incarnation_at(now + 30min, 1)).ok());
  const df::Status early = restart(0);
  INFO(early.to_string());
  CHECK(early.code() == df::Code::aborted);
  CHECK(mentions(early, "has been started anew since this one was started, by the calendars of the machines"));
  CHECK(mentions(early, "s in the future"));
  tasks.simulation.run_for(30min);
  CHECK(restart(0).ok());
}

TEST_CASE("a start from the future that another one has replaced does not come back", "[net]") {
  SimulatedTasks tasks({"ps0", "worker0"});
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {});
  const auto y = [&] {
    const auto on = graph.device("/job:ps/task:0");
    return x * 3.0f;
  }();
  const auto run = [&](df::Session& session) {
    return status_of([&] { return session.run({{x, df::Tensor<float>(2.0f)}}, y); });
  };
  const auto now = tasks.processes.at("worker0")->clock()->wall_now();
  tasks.servers.erase("worker0");
  tasks.simulation.run_for(1s);
  tasks.start("worker0", "worker0", df::net::incarnation_at(now + 24h * 365, 1));
  const auto before = tasks.session(graph, "worker0");
  CHECK(run(*before).ok());
  tasks.start("worker0", "elsewhere");
  const auto after = tasks.session(graph, "elsewhere");
  CHECK(run(*after).ok());
  for (int i = 0; i < 3; ++i) {
    const df::Status status = run(*before);
    INFO(status.to_string());
    CHECK(status.code() == df::Code::aborted);
  }
  CHECK(tasks.has_logged("has been started anew since this one was started"));
  CHECK(run(*after).ok());
}
