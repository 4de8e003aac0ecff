#include <dflow/net/client/inspect.hpp>

#include <dflow/base/clock.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/protocol/messages.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "../cluster_harness.hpp"
#include "support/end_when_cancelled.hpp"

namespace df = dflow;
using df::net::TaskReport;
using df::net::TaskStatus;
using df::testing::MemoryCluster;

namespace {

/// Ends when the step is cancelled.
struct InspectHolds : df::Op<"InspectHolds", df::TypeList<float>> {
  static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto inspect_ops = df::standard_ops + df::ops<InspectHolds>;

/// Two tasks. The worker waits for a tensor that the ps never makes, until the step is stopped.
struct HeldCluster {
  std::shared_ptr<df::VirtualClock> clock = std::make_shared<df::VirtualClock>();
  MemoryCluster cluster{{{"ps", 1}, {"worker", 2}}, options_with(clock)};
  df::Graph graph;
  std::stop_source stop;
  std::promise<df::Status> ended;

  static df::net::ServerOptions options_with(std::shared_ptr<df::Clock> clock) {
    df::net::ServerOptions options;
    options.ops = inspect_ops;
    options.clock = std::move(clock);
    options.silence_timeout = std::chrono::hours(1);
    options.slow_wait = std::chrono::seconds(10);
    return options;
  }
  std::vector<TaskReport> reports() {
    return df::net::inspect(cluster.spec(), {.transport = cluster.options().transport, .clock = clock});
  }
  /// A step of worker 0 on worker 1, which waits for the ps.
  void run(df::Session& session, const df::Output<float>& x, const df::Output<float>& y) {
    session.run_async({.stop = stop.get_token()}, {{x, 1.0f}}, y,
                      [this](df::Status status, const df::Tensor<float>&) { ended.set_value(std::move(status)); });
  }
};

const TaskReport& report_of(const std::vector<TaskReport>& reports, const std::string& task) {
  for (const TaskReport& report : reports) {
    if (report.task == task) return report;
  }
  FAIL("there is no report of " << task);
  return reports.front();
}

}  // namespace

template <>
struct dflow::Kernel<InspectHolds, df::Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const { end_when_cancelled(context, std::move(done)); }
};

TEST_CASE("a cluster says which sessions it has, which steps run, and who waits for whom", "[net][inspect]") {
  HeldCluster held;
  const auto x = df::placeholder<float>(held.graph, {}, {.name = "x"});
  const auto made = [&] {
    const auto on = held.graph.device("/job:ps/task:0");
    return df::apply<InspectHolds>(x);
  }();
  const auto wanted = [&] {
    const auto on = held.graph.device("/job:worker/task:1");
    return made * 2.0f;
  }();

  for (const TaskReport& report : held.reports()) {  // tasks without ops are answered too
    CHECK(report.status.ok());
    CHECK(report.said.num_sessions == 0);
    CHECK(report.said.devices.size() == 1);
  }
  df::Session session(held.graph, {.ops = inspect_ops, .target = held.cluster.server("worker", 0).target()});
  held.run(session, x, wanted);
  const std::string ps = "/job:ps/replica:0/task:0", waiting = "/job:worker/replica:0/task:1";
  std::vector<TaskReport> reports;
  do {
    reports = held.reports();
  } while (report_of(reports, ps).said.num_steps == 0 || report_of(reports, waiting).said.num_waits == 0);

  const TaskStatus& of_ps = report_of(reports, ps).said;
  CHECK(of_ps.incarnation == held.cluster.server("ps", 0).incarnation());
  REQUIRE(of_ps.sessions.size() == 1);
  CHECK(of_ps.sessions[0].client == "/job:worker/replica:0/task:0");
  CHECK(of_ps.sessions[0].num_shares == 1);
  REQUIRE(of_ps.steps.size() == 1);
  const TaskStatus& of_worker = report_of(reports, waiting).said;
  REQUIRE(of_worker.waits.size() == 1);
  CHECK(of_worker.waits[0].step == of_ps.steps[0].step);
  CHECK(of_worker.waits[0].from == ps + "/device:CPU:0");
  CHECK(of_worker.waits[0].to == waiting + "/device:CPU:0");
  CHECK_THAT(of_worker.waits[0].tensor, Catch::Contains("InspectHolds"));

  held.clock->advance(std::chrono::seconds(1));
  CHECK(report_of(held.reports(), ps).said.steps.at(0).age_ns == 1'000'000'000);
  const std::string text = df::net::to_text(reports);
  CHECK_THAT(text, Catch::Contains("waits for 'InspectHolds") && Catch::Contains("from " + ps));
  const std::string json = df::net::to_json(reports);
  CHECK_THAT(json, Catch::Contains("\"from\": \"" + ps + "/device:CPU:0\""));

  for (int i = 0; i < 3; ++i) held.clock->advance(std::chrono::seconds(10));
  CHECK(held.cluster.log().has("for over 10 s, step"));
  CHECK(held.cluster.log().has("waits for 'InspectHolds"));
  int lines = 0;
  for (const std::string& line : held.cluster.log().lines)
    lines += line.find(waiting + "/device:CPU:0 waits") != line.npos;
  CHECK(lines == 1);  // once, and not by each look

  held.stop.request_stop();
  CHECK(held.ended.get_future().get().code() == df::Code::cancelled);
  do {
    reports = held.reports();
  } while (report_of(reports, ps).said.num_steps != 0 || report_of(reports, waiting).said.num_waits != 0);
}

TEST_CASE("a session that a task keeps for a client is told, and its step that does not end", "[net][inspect]") {
  HeldCluster held;
  const std::string master = "/job:worker/replica:0/task:0";
  const auto x = df::placeholder<float>(held.graph, {}, {.name = "x"});
  const auto on = held.graph.device("/job:worker/task:0");
  const auto y = df::apply<InspectHolds>(x);
  std::vector<TaskReport> reports;
  {
    df::Session session(held.graph,
                        {.ops = inspect_ops,
                         .target = df::net::remote_master(held.cluster.spec(), master, {}, held.cluster.options())});
    held.run(session, x, y);
    do {
      reports = held.reports();
    } while (report_of(reports, master).said.num_steps == 0);
    const TaskStatus& said = report_of(reports, master).said;
    REQUIRE(said.sessions.size() == 1);
    CHECK(said.num_sessions == 1);
    CHECK(said.sessions[0].is_whole);
    CHECK_THAT(said.sessions[0].client, Catch::StartsWith("/job:client/"));
    CHECK(said.sessions[0].num_shares == 1);
    REQUIRE(said.steps.size() == 1);
    CHECK(said.steps[0].is_whole);
    CHECK(said.steps[0].share == said.sessions[0].number);
    CHECK(df::net::from_body<TaskStatus>(df::net::to_body(said)) == said);
    CHECK_THAT(df::net::to_text(reports), Catch::Contains(", whose master is this task: 1 steps run\n") &&
                                              Catch::Contains("  a step of /job:client/"));
    CHECK_THAT(df::net::to_json(reports), Catch::Contains("\"steps\": 1}") && Catch::Contains("\"session\": 1, "));
    held.stop.request_stop();
    CHECK(held.ended.get_future().get().code() == df::Code::cancelled);
  }
  do {
    reports = held.reports();
  } while (report_of(reports, master).said.num_steps != 0 || report_of(reports, master).said.num_sessions != 0);
}

TEST_CASE("a task that does not answer says why, and the others answer", "[net][inspect]") {
  MemoryCluster cluster({{"ps", 2}});
  cluster.stop("ps", 1);
  for (int i = 0; i < 3; ++i) {
    const auto reports = df::net::inspect(cluster.spec(), {.transport = cluster.options().transport});
    REQUIRE(reports.size() == 2);
    CHECK(reports[0].status.ok());
    CHECK(reports[1].status.code() == df::Code::unavailable);
    CHECK_THAT(df::net::to_text(reports), Catch::Contains("/job:ps/replica:0/task:1"));
    CHECK_THAT(df::net::to_json(reports),
               Catch::Contains("\"status\": \"UNAVAILABLE\"") || Catch::Contains("\"status\": \"Unavailable\""));
  }
  df::net::ClusterSpec wrong = cluster.spec();
  wrong.set_secret("not the secret that they have");
  const auto refused = df::net::inspect(wrong, {.transport = cluster.options().transport});
  CHECK_FALSE(refused[0].status.ok());
}

TEST_CASE("what a task says is bounded, and nonsense is refused", "[net][inspect]") {
  TaskStatus status;
  status.task = std::string(5000, 't');
  status.num_waits = 1'000'000;
  for (int i = 0; i < 1000; ++i) {
    status.devices.push_back("/cpu:" + std::to_string(i));
    status.sessions.push_back({"client", 1, 2, 3});
    status.steps.push_back({1, "client", 2, 3});
    status.waits.push_back({1, std::string(1000, 'x'), "from", "to", ":0"});
  }
  const std::string body = df::net::to_body(status);
  CHECK(body.size() < 300'000);
  const auto read = df::net::from_body<TaskStatus>(body);
  CHECK(read.task.size() == TaskStatus::max_text_bytes);
  CHECK(read.waits.size() == TaskStatus::max_entries);
  CHECK(read.num_waits == 1'000'000);
  CHECK(df::net::from_body<TaskStatus>(df::net::to_body(read)) == read);

  TaskStatus small;
  small.task = "/job:ps/replica:0/task:0";
  small.steps.push_back({1, "client", 2, 3});
  small.waits.push_back({7, "tensor \"x\"\n", "a", "b", "loop:3"});
  CHECK(to_string(small.waits[0]) == "step 7: b waits for 'tensor \"x\"\n' (loop:3) from a");
  const std::string good = df::net::to_body(small);
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    CHECK_THROWS_AS(df::net::from_body<TaskStatus>(good.substr(0, cut)), df::Error);
    for (const int flip : {1, 0x80}) {
      std::string bad = good;
      bad[cut] = static_cast<char>(bad[cut] ^ flip);
      try {
        static_cast<void>(df::net::from_body<TaskStatus>(bad));
      } catch (const df::Error&) {  // many flips are numbers and letters of their own
      }
    }
  }
  const TaskReport report{small.task, "here", {}, small};
  CHECK_THAT(df::net::to_json({&report, 1}), Catch::Contains("tensor \\\"x\\\"\\n"));
  const TaskReport cut{"\xe2\x82", "here", {}, small};
  CHECK_THAT(df::net::to_json({&cut, 1}), Catch::Contains("\"\xef\xbf\xbd\xef\xbf\xbd\""));
}

TEST_CASE("a cluster of processes that speak TCP is inspected by its secret", "[net][inspect]") {
  df::net::ClusterSpec spec;
  spec.add_task("ps", 0, "127.0.0.1:0");
  spec.set_secret("a secret of sixteen bytes or more");
  spec.set_task("ps", 0);
  df::net::Server server(spec, {.num_threads = 1, .log = [](std::string_view) {}});
  df::net::ClusterSpec asked;
  asked.add_task("ps", 0, server.address());
  asked.set_secret("a secret of sixteen bytes or more");
  CHECK(df::net::inspect(asked).at(0).said.incarnation == server.incarnation());
  asked.set_secret("another of sixteen bytes or more");
  CHECK_FALSE(df::net::inspect(asked).at(0).status.ok());
  asked.set_secret("");
  CHECK_THROWS_WITH(df::net::inspect(asked), Catch::Contains("/job:ps/replica:0/task:0 is open to strangers"));
  asked.set_insecure(true);
  const df::Status without = df::net::inspect(asked).at(0).status;
  CHECK(without.code() == df::Code::unauthenticated);
  CHECK_THAT(without.to_string(), Catch::Contains("was given no secret of the cluster, and") &&
                                      Catch::Contains("'/job:ps/replica:0/task:0' has one"));
}

TEST_CASE("what tasks say of themselves stays in its line of the text, and tells a terminal nothing") {
  const std::string odd = "a\n\x1b[31m";
  TaskReport lost, busy;
  lost.task = "/job:ps/replica:0/task:0";
  lost.status = df::Status::unavailable(odd);
  busy.task = "/job:ps/replica:0/task:1";
  busy.said.sessions = {{odd, 1, 2, 3}};
  busy.said.steps = {{1, odd, 2, 3}};
  busy.said.waits = {{1, odd, odd, odd, odd}};
  const std::string text = df::net::to_text(std::vector<TaskReport>{lost, busy});
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 7);  // two for each task, and one for each listed item
  df::net::LogReport log;
  log.said.records = {{.step = 1, .name = odd, .peer = odd}};
  const std::string records = df::net::to_text(std::vector<df::net::LogReport>{log});
  CHECK(records.find('\x1b') == std::string::npos);
  CHECK(std::count(records.begin(), records.end(), '\n') == 2);
}
