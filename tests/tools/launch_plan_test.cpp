#include "../../tools/launch_plan.hpp"

#include "catch.hpp"
#include "support/errors.hpp"

#include <string>
#include <string_view>
#include <vector>

using namespace dflow;
using dflow::launch::LineCutter;
using dflow::launch::OnFailure;
using dflow::launch::Outcome;

namespace {

using Next = Outcome::Next;

std::vector<launch::Task> tasks_of_launch(const launch::Numbers& numbers) {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < numbers.addresses(); ++i) addresses.push_back("h:" + std::to_string(i + 1));
  return launch::plan_tasks(numbers, addresses, {"prog", "-x"}, "secret.txt");
}

}  // namespace

TEST_CASE("each launched task has flags that say who it is", "[tools]") {
  const auto tasks = tasks_of_launch({.ps = 2, .workers = 1, .has_chief = true, .has_evaluator = true});
  REQUIRE(tasks.size() == 5);
  for (const launch::Task& task : tasks) {
    std::vector<const char*> argv;
    for (const std::string& argument : task.command) argv.push_back(argument.c_str());
    // Without a file there is no secret to read.
    REQUIRE(std::string_view(argv.back()) == "--dflow_secret_file=secret.txt");
    const net::ClusterSpec spec = net::ClusterSpec::from_flags(static_cast<int>(argv.size()) - 1, argv.data(),
                                                               [](const std::string&) { return std::nullopt; });
    CHECK(spec.job() == task.job);
    CHECK(spec.task_index() == task.index);
    CHECK(spec.jobs_to_string() == "chief=h:3;ps=h:1,h:2;worker=h:4");
  }
  CHECK(launch::plan_tasks({.ps = 0}, {"h:1"}, {"prog"}, "")[0].command.back() == "--dflow_insecure");
}

TEST_CASE("what a task writes is cut into lines wherever it comes in parts", "[tools]") {
  const std::string_view text = "one\n\ntwo\nthree";
  for (std::size_t part = 1; part <= text.size(); ++part) {
    LineCutter cutter;
    std::vector<std::string> lines;
    const auto emit = [&](std::string_view line) { lines.emplace_back(line); };
    for (std::size_t at = 0; at < text.size(); at += part) cutter.add(text.substr(at, part), emit);
    CHECK(lines.size() == 3);
    cutter.finish(emit);
    cutter.finish(emit);
    CHECK(lines == std::vector<std::string>{"one", "", "two", "three"});
  }
}

TEST_CASE("a line without an end is cut where it is too long", "[tools]") {
  LineCutter cutter;
  std::vector<std::size_t> sizes;
  const auto emit = [&](std::string_view line) { sizes.push_back(line.size()); };
  cutter.add(std::string(2 * LineCutter::longest + 5, 'x'), emit);
  cutter.finish(emit);
  CHECK(sizes == std::vector<std::size_t>{LineCutter::longest, LineCutter::longest, 5});
}

TEST_CASE("the prefix of a line is as wide as the widest, in colour on a terminal", "[tools]") {
  CHECK(launch::prefix_of({"ps", 0, {}}, 0, 8, false) == "[ps 0]     ");
  CHECK(launch::prefix_of({"worker", 1, {}}, 1, 8, false) == "[worker 1] ");
  CHECK(contains(launch::prefix_of({"worker", 1, {}}, 7, 8, true), "[worker 1]\033[0m "));
}

TEST_CASE("a launch is over when its last worker has ended", "[tools]") {
  Outcome outcome(tasks_of_launch({.ps = 1, .workers = 2}), OnFailure::stop, 0);
  CHECK(outcome.ended(1, 0) == Next::wait);
  CHECK(outcome.ended(2, 0) == Next::stop);
  CHECK(outcome.result() == 0);
}

TEST_CASE("a launch without workers is over with its last task", "[tools]") {
  Outcome outcome(tasks_of_launch({.ps = 2, .workers = 0}), OnFailure::stop, 0);
  CHECK(outcome.ended(0, 0) == Next::wait);
  CHECK(outcome.ended(1, 0) == Next::stop);
}

TEST_CASE("a chief's end and status are those of the launch", "[tools]") {
  Outcome outcome(tasks_of_launch({.ps = 1, .workers = 1, .has_chief = true}), OnFailure::go_on, 0);
  CHECK(outcome.ended(2, 9) == Next::wait);
  CHECK(outcome.ended(1, 0) == Next::stop);
  CHECK(outcome.result() == 0);
}

TEST_CASE("the first failure is the launch's where it stops it", "[tools]") {
  Outcome outcome(tasks_of_launch({.ps = 1, .workers = 2}), OnFailure::stop, 0);
  CHECK(outcome.ended(2, 9) == Next::stop);
  CHECK(outcome.result() == 9);
}

TEST_CASE("a task is started again as often as it may be", "[tools]") {
  Outcome outcome(tasks_of_launch({.ps = 1, .workers = 1}), OnFailure::restart, 2);
  CHECK(outcome.ended(1, 9) == Next::restart);
  CHECK(outcome.ended(0, 9) == Next::restart);
  CHECK(outcome.ended(1, 8) == Next::restart);
  CHECK(outcome.ended(1, 7) == Next::stop);
  CHECK(outcome.result() == 7);
}
