#include <dflow/net/inspect/task_log.hpp>

#include <dflow/base/clock.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/client/inspect.hpp>
#include <dflow/net/protocol/messages.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../cluster_harness.hpp"

namespace df = dflow;
using df::net::LogRecord;
using df::net::LogReport;
using df::net::LogRequest;
using df::net::TaskLog;
using What = LogRecord::What;

namespace {

constexpr auto log_on = LogRequest::Switch::on;
constexpr auto log_off = LogRequest::Switch::off;

LogRecord record_of_step(std::uint64_t step) { return {.step = step, .name = "t", .peer = "p"}; }

/// A worker that multiplies its feeds on a ps: once as a small tensor that is sent unasked, and once as a tensor of
/// unknown size.
struct LoggedCluster {
  df::testing::MemoryCluster cluster{{{"ps", 1}, {"worker", 1}}};
  df::Graph graph;
  df::Output<float> x = df::placeholder<float>(graph, {df::dynamic});
  df::Output<float> y = [this] {
    const auto on = graph.device("/job:ps/task:0");
    return df::reduce_sum(x * 2.0f) + x;
  }();
  df::Session session{graph, {.target = cluster.server("worker", 0).target()}};

  void run() { static_cast<void>(session.run({{x, df::Tensor<float>({3}, {1, 2, 3})}}, y)); }
  std::vector<LogReport> ask(const LogRequest& request) {
    std::vector<LogReport> reports =
        df::net::inspect_logs(cluster.spec(), request, {.transport = cluster.options().transport});
    for (const LogReport& report : reports) CHECK(report.status.ok());
    return reports;
  }
};

std::vector<LogRecord> of_kind(const LogReport& report, What what) {
  std::vector<LogRecord> found;
  for (const LogRecord& record : report.said.records) {
    if (record.what == what) found.push_back(record);
  }
  return found;
}

}  // namespace

TEST_CASE("a log keeps nothing until it is switched on, and what it has when it is switched off", "[net][inspect]") {
  const auto clock = std::make_shared<df::VirtualClock>();
  TaskLog log(clock);
  log.add(record_of_step(1));
  CHECK(log.handle({.turn = log_on, .fetch = true}).records.empty());
  clock->advance(std::chrono::seconds(1));
  log.add(record_of_step(2));
  const df::net::LogReply off = log.handle({.turn = log_off});
  CHECK_FALSE(off.is_on);
  CHECK(off.records.empty());
  CHECK(off.now_ns == 1'000'000'000);
  log.add(record_of_step(3));
  const std::vector<LogRecord> kept = log.handle({.clear = true, .fetch = true}).records;
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].step == 2);
  CHECK(kept[0].end_ns == 1'000'000'000);
  CHECK(log.handle({.fetch = true}).records.empty());
}

TEST_CASE("a log tells of the steps that are asked for", "[net][inspect]") {
  TaskLog log(std::make_shared<df::VirtualClock>());
  log.handle({.turn = log_on});
  for (const std::uint64_t step : {5, 6, 5, 7}) log.add(record_of_step(step));
  CHECK(log.handle({.fetch = true, .steps = {7, 5}}).records.size() == 3);
  CHECK(log.handle({.fetch = true, .steps = {8}}).records.empty());
  CHECK(log.handle({.fetch = true}).records.size() == 4);
}

TEST_CASE("a log is bounded, and says what it has lost", "[net][inspect]") {
  TaskLog log(std::make_shared<df::VirtualClock>());
  log.handle({.turn = log_on});
  LogRecord longest = record_of_step(0);
  longest.name.assign(10'000, 'x');
  log.add(longest);
  CHECK(log.handle({.fetch = true}).records.at(0).name.size() == TaskLog::max_text_bytes);
  for (std::uint64_t step = 1; step <= TaskLog::max_records + 4; ++step) log.add(record_of_step(step));
  const df::net::LogReply reply = log.handle({.clear = true, .fetch = true});
  CHECK(reply.records.size() == TaskLog::max_records);
  CHECK(reply.records.front().step == 5);
  CHECK(reply.num_dropped == 5);
  CHECK(log.handle({}).num_dropped == 0);
}

TEST_CASE("what goes over the wire of a log comes back, and what is cut is none", "[net][inspect]") {
  df::net::LogReply reply{.is_on = true, .now_ns = -5, .num_dropped = 6, .records = {}};
  reply.records.push_back({What::sent, 1, "t", "/job:ps", 2, 3, 4, df::Code::cancelled});
  const std::string bytes = df::net::to_body(reply);
  const auto got = df::net::from_body<df::net::LogReply>(bytes);
  CHECK(got.is_on);
  CHECK(got.now_ns == -5);
  CHECK(got.num_dropped == 6);
  CHECK(got.records == reply.records);
  const std::string asked = df::net::to_body(LogRequest{log_off, true, true, {1, 2}});
  CHECK(df::net::from_body<LogRequest>(asked).steps == std::vector<std::uint64_t>{1, 2});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_THROWS_AS(df::net::from_body<df::net::LogReply>(bytes.substr(0, size)), df::Error);
  }
  for (std::size_t size = 0; size < asked.size(); ++size) {
    CHECK_THROWS_AS(df::net::from_body<LogRequest>(asked.substr(0, size)), df::Error);
  }
  CHECK_THROWS_AS(df::net::from_body<LogRequest>("\3" + asked.substr(1)), df::Error);
}

TEST_CASE("logs of a cluster say what was run, sent and received, by both ends", "[net][inspect]") {
  LoggedCluster logged;
  logged.run();
  for (const LogReport& report : logged.ask({.turn = log_on, .fetch = true})) CHECK(report.said.records.empty());
  logged.run();
  const std::vector<LogReport> reports = logged.ask({.turn = log_off, .fetch = true});
  logged.run();
  REQUIRE(reports.size() == 2);
  const LogReport &ps = reports[0], &worker = reports[1];
  const std::vector<LogRecord> runs = of_kind(ps, What::ran);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].peer == worker.task);
  CHECK(runs[0].code == df::Code::ok);
  CHECK(of_kind(worker, What::ran).empty());

  // Each tensor that came was sent in this step with this size. By the clocks, it came at most half a round trip
  // before it was sent.
  const std::vector<LogRecord> sent = of_kind(ps, What::sent), received = of_kind(worker, What::received);
  REQUIRE(sent.size() == 1);
  REQUIRE(received.size() == 1);
  CHECK(sent[0].step == runs[0].step);
  CHECK(received[0].step == runs[0].step);
  CHECK(received[0].name == sent[0].name);
  CHECK(sent[0].peer == worker.task);
  CHECK(received[0].peer == ps.task);
  CHECK(sent[0].bytes == 3 * sizeof(float));
  CHECK(received[0].bytes == sent[0].bytes);
  CHECK(received[0].end_ns >= received[0].start_ns);

  const std::vector<LogReport> after = logged.ask({.clear = true, .fetch = true});
  CHECK(after[0].said.records.size() == ps.said.records.size());
  for (const LogReport& report : logged.ask({.fetch = true})) CHECK(report.said.records.empty());

  const std::string text = to_text(reports);
  CHECK(text.find(ps.task + " sent '" + sent[0].name + "' to " + worker.task + ", 12 bytes") != std::string::npos);
  CHECK(text.find("the log is off") != std::string::npos);
  const std::string json = to_json(reports);
  CHECK(json.find("\"what\": \"received\", \"step\": \"" + std::to_string(runs[0].step)) != std::string::npos);
}
