// Partial runs of sessions that the master of another task keeps, with the same behaviour as in any session.
#include <dflow/net/client/remote_master.hpp>

#include <catch2/catch.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/client/inspect.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../cluster_harness.hpp"
#include "support/errors.hpp"

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

/// A branch that is never taken.
struct UntakenAtMaster : df::Op<"UntakenAtMaster", df::TypeList<float>> {
  static void infer(df::InferContext& context) { context.set_output(0, context.input(0)); }
};

/// Fails for negative numbers.
struct FailingAtMaster : df::Op<"FailingAtMaster", df::TypeList<float>> {
  static void infer(df::InferContext& context) { context.set_output(0, context.input(0)); }
};

}  // namespace

template <>
struct dflow::Kernel<UntakenAtMaster, dflow::Cpu, float> {
  static constexpr bool makes_dead_outputs = true;
  void operator()(KernelContext& context) const { context.set_output_dead(0); }
};

template <>
struct dflow::Kernel<FailingAtMaster, dflow::Cpu, float> {
  void operator()(KernelContext& context, const Tensor<float>& x, Tensor<float>& y) const {
    if (x.span()[0] < 0) context.fail("it is negative");
    y.span()[0] = x.span()[0];
  }
};

namespace {

std::shared_ptr<df::net::RemoteMaster> partial_master(MemoryCluster& cluster) {
  return df::net::remote_master(cluster.spec(), "/job:worker/task:0", {}, cluster.options());
}

/// How many steps run in the first parameter server.
std::uint64_t steps_in_ps(MemoryCluster& cluster) {
  for (const auto& report : df::net::inspect(cluster.spec(), {.transport = cluster.options().transport})) {
    if (report.task == "/job:ps/replica:0/task:0" && report.status.ok()) return report.said.num_steps;
  }
  return ~std::uint64_t{0};
}

/// The client decides where a and b lie; y = a + 1 on a parameter server, z = y + b at the master.
struct TwoHalves {
  df::Graph graph;
  df::Output<float> a, b, y, z;

  TwoHalves() {
    a = df::placeholder<float>(graph, {}, {.name = "a"});
    b = df::placeholder<float>(graph, {}, {.name = "b"});
    {
      const auto on = graph.device("/job:ps/task:0");
      y = df::add(a, df::constant(graph, 1.0f), {.name = "y"});
    }
    z = df::add(y, b, {.name = "z"});
  }
};

}  // namespace

TEST_CASE("a partial run at a remote master computes what it is asked for from what it has been fed, call by call") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  df::Graph graph;
  const auto a = df::placeholder<float>(graph, {df::dynamic}), b = df::placeholder<float>(graph, {df::dynamic});
  const auto c = df::placeholder<float>(graph, {});
  df::Output<float> doubled, sum;
  {
    const auto on = graph.device("/job:ps/task:0");
    doubled = a * 2.0f;
  }
  {
    const auto on = graph.device("/job:ps/task:1");
    sum = doubled + b;
  }
  const auto total = df::reduce_sum(sum) * c;
  const auto three = df::constant(graph, df::Tensor<float>({2}, {3, 3}));
  df::Session session(graph, {.target = partial_master(cluster)});
  for (int round = 0; round < 3; ++round) {
    auto run = session.partial_run(df::feeds(a, b, c), df::fetches(doubled, sum, total, three));
    CHECK(run.fetch(three)(1) == 3);
    df::Tensor<float> x({2}, {1, 2});
    run.feed(a, x);
    x(1) = 100;  // the caller's own tensor
    CHECK(run.fetch(doubled)(1) == 4);
    CHECK(run.feed(b, df::Tensor<float>({2}, {10, 20})).fetch(sum)(1) == 24);
    CHECK(run.feed(c, 3.0f).fetch(total).scalar() == 3 * (12 + 24));
    run.finish();
    run.finish();
  }
  // In another order, some at once, some after the end, and large ones.
  const std::int64_t many = 1'000'000;
  auto run = session.partial_run(df::feeds(a, b, c), df::fetches(a, doubled, sum, total));
  run.feed(c, 2.0f).feed(b, df::Tensor<float>::full({many}, 5.0f)).feed(a, df::Tensor<float>::full({many}, 1.0f));
  const auto [t, d] = run.fetch(total, doubled);
  CHECK(t.scalar() == 14.0f * static_cast<float>(many));
  CHECK(d(many - 1) == 2);
  run.finish();
  CHECK(run.fetch(sum)(many - 1) == 7);
  CHECK(run.fetch(a)(0) == 1);
  // The graph grows.
  const auto grown = total + 1.0f;
  auto next = session.partial_run(df::feeds(a, b, c), df::fetches(grown));
  next.feed(a, df::Tensor<float>({1}, {1})).feed(b, df::Tensor<float>({1}, {1})).feed(c, 1.0f);
  CHECK(next.fetch(grown).scalar() == 4);
}

TEST_CASE("nodes of a partial run at a remote master run once, and its operations have run when it has ended") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {}), y = df::placeholder<float>(graph, {});
  const auto on = graph.device("/job:ps/task:0");
  const df::Variable<float> w(graph, 0);
  const df::Operation first = w.assign_add(x);
  df::Output<float> after_x;
  {
    const auto after = graph.control_dependencies({first});
    after_x = w.read();
  }
  df::Operation last;
  {
    const auto after = graph.control_dependencies({after_x.operation()});
    last = w.assign_add(y * 10.0f);
  }
  df::Session session(graph, {.target = partial_master(cluster)});
  session.run(df::initialize_variables(graph));
  float expected = 0;
  for (int round = 0; round < 3; ++round) {
    auto run = session.partial_run(df::feeds(x, y), df::fetches(after_x, last));
    CHECK(run.feed(x, 1.0f).fetch(after_x).scalar() == expected + 1);
    CHECK(session.run(w).scalar() == expected + 1);  // other steps go on meanwhile
    CHECK(code_of([&] { run.fetch(last); }) == df::Code::invalid_argument);
    run.feed(y, 2.0f).fetch(last);
    expected += 21;
    CHECK(session.run(w).scalar() == expected);
  }
  // Without a request: the caller that takes the last fetch waits.
  auto run = session.partial_run(df::feeds(x, y), df::fetches(after_x, last));
  CHECK(run.feed(y, 2.0f).feed(x, 1.0f).fetch(after_x).scalar() == expected + 1);
  CHECK(session.run(w).scalar() == expected + 21);
}

TEST_CASE("what is wrong with a call of a partial run at a remote master is said as at home, and the run goes on") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  TwoHalves model;
  const auto c = df::placeholder<float>(model.graph, {df::dynamic}, {.name = "c"});
  const auto a = model.a, b = model.b, y = model.y, z = model.z;
  df::Session session(model.graph, {.target = partial_master(cluster)});
  auto run = session.partial_run(df::feeds(a, b, c), df::fetches(y, z));
  const auto says = [&](const auto& call, std::string_view text) {
    const df::Status status = status_of(call);
    INFO(status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(status.message().find(text) != std::string::npos);
  };
  says([&] { run.fetch(y); }, "'y' needs 'a', not fed yet");
  says([&] { run.fetch(z); }, "'z' needs 'a', 'b', not fed yet");
  says([&] { run.fetch(a); }, "'a' is none of the edges that may be fetched");
  says([&] { run.fetch(y, y); }, "fetched twice in one call");
  says([&] { run.feed(y, 1.0f); }, "'y' is none of the edges that may be fed");
  says([&] { run.feed(c, 1.0f); }, "'c' carries");
  says([&] { run.fetch(z.operation()); }, "none of the operations");
  says([&] { run.finish(); }, "needs 'a', 'b', 'c', not fed yet");
  run.feed(a, 1.0f);
  says([&] { run.feed(a, 2.0f); }, "'a' is fed twice");
  CHECK(run.fetch(y).scalar() == 2);
  says([&] { run.fetch(y); }, "'y' was fetched before");
  CHECK(run.feed(b, 3.0f).fetch(z).scalar() == 5);
  says([&] { run.finish(); }, "needs 'c'");
  run.feed(c, df::Tensor<float>({1}, {1.0f}));
  run.finish();
  df::PartialRun other = std::move(run);
  CHECK(code_of([&] { run.finish(); }) == df::Code::failed_precondition);
  other.finish();

  says([&] { session.partial_run(df::feeds(a), df::fetches(z)); }, "placeholder 'b' must be fed");
  says([&] { session.partial_run(df::feeds(a, a), df::fetches(y)); }, "fed twice");
  says([&] { session.partial_run(df::feeds(a), df::fetches()); }, "a step must fetch or run something");
  df::RunOptions traced;
  traced.trace = true;
  says([&] { session.partial_run(traced, nullptr, df::feeds(a), df::fetches(y)); }, "a trace needs metadata");
}

TEST_CASE("what ends a partial run at a remote master is thrown by all its calls from then on") {
  df::net::ServerOptions with_ops;
  with_ops.ops = df::standard_ops + df::ops<FailingAtMaster, UntakenAtMaster>;
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}}, with_ops);
  df::Graph graph;
  const auto a = df::placeholder<float>(graph, {}), b = df::placeholder<float>(graph, {});
  const auto dead = df::apply<UntakenAtMaster>(a, {}, {.name = "dead"});
  const auto on = graph.device("/job:ps/task:0");
  const unsigned line = __LINE__ + 1;
  const auto failing = df::apply<FailingAtMaster>(a, {}, {.name = "failing"});
  const auto sum = failing + b;
  df::Session session(graph, {.target = partial_master(cluster)});
  for (int round = 0; round < 3; ++round) {
    auto run = session.partial_run(df::feeds(a, b), df::fetches(failing, sum));
    run.feed(a, -1.0f);
    const df::Status status = status_of([&] { run.fetch(failing); });
    CHECK(status.node() == "failing");
    CHECK(status.task() == "/job:ps/replica:0/task:0");
    CHECK(status.where().line() == line);
    CHECK(status_of([&] { run.fetch(sum); }) == status_of([&] { run.feed(b, 1.0f); }));
    CHECK(status_of([&] { run.finish(); }).node() == "failing");
    auto next = session.partial_run(df::feeds(a, b), df::fetches(failing, sum));
    CHECK(next.feed(a, 1.0f).feed(b, 1.0f).fetch(sum).scalar() == 2);
  }
  auto run = session.partial_run(df::feeds(a, b), df::fetches(dead, sum));
  const df::Status status = status_of([&] { run.feed(a, 1.0f).fetch(dead); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.node() == "dead");
}

TEST_CASE("a stop and a deadline end a partial run at a remote master that waits for its caller, everywhere") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  TwoHalves model;
  const auto clock = std::make_shared<df::VirtualClock>();
  df::SessionOptions options;
  options.target = partial_master(cluster);
  options.clock = clock;
  df::Session session(model.graph, options);
  df::RunOptions limits;
  limits.deadline = std::chrono::hours(1);
  auto late = session.partial_run(limits, nullptr, df::feeds(model.a, model.b), df::fetches(model.y, model.z));
  CHECK(late.feed(model.a, 1.0f).fetch(model.y).scalar() == 2);
  clock->advance(std::chrono::hours(2));
  CHECK(code_of([&] { late.feed(model.b, 1.0f).fetch(model.z); }) == df::Code::deadline_exceeded);

  std::stop_source source;
  df::RunOptions stops;
  stops.stop = source.get_token();
  auto stopped = session.partial_run(stops, nullptr, df::feeds(model.a, model.b), df::fetches(model.y, model.z));
  stopped.feed(model.a, 1.0f);
  source.request_stop();
  CHECK(code_of([&] { stopped.feed(model.b, 1.0f).fetch(model.z); }) == df::Code::cancelled);
  while (steps_in_ps(cluster) != 0) std::this_thread::yield();

  // The master counts the time by its own clock. The time by another clock does not matter.
  clock->advance(std::chrono::hours(24 * 365));
  auto last = session.partial_run(limits, nullptr, df::feeds(model.a, model.b), df::fetches(model.z));
  CHECK(last.feed(model.a, 1.0f).feed(model.b, 1.0f).fetch(model.z).scalar() == 3);
  CHECK(session.run(limits, {{model.a, df::Tensor<float>(1.0f)}}, model.y).scalar() == 2);
  df::Session real(model.graph, {.target = partial_master(cluster)});
  limits.deadline = std::chrono::milliseconds(1);
  CHECK(code_of([&] {
          auto run = real.partial_run(limits, nullptr, df::feeds(model.a, model.b), df::fetches(model.y, model.z));
          df::Status status;
          do {
            status = status_of([&] { run.fetch(model.z); });
          } while (status.code() == df::Code::invalid_argument);
          df::throw_if_error(status);
        }) == df::Code::deadline_exceeded);
}

TEST_CASE("a partial run at a remote master that is let go of is cancelled, or goes on if it has been fed all") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  const auto a = df::placeholder<float>(graph, {}), b = df::placeholder<float>(graph, {});
  const auto on = graph.device("/job:ps/task:0");
  const df::Variable<float> w(graph, 0);
  const auto y = a + 1.0f;
  const df::Operation add_all = w.assign_add(a + b);
  auto session = std::make_optional<df::Session>(graph, df::SessionOptions{.target = partial_master(cluster)});
  session->run(df::initialize_variables(graph));
  for (int round = 0; round < 3; ++round) {
    static_cast<void>(session->partial_run(df::feeds(a, b), df::fetches(y, add_all)));
    auto run = session->partial_run(df::feeds(a, b), df::fetches(y, add_all));
    CHECK(run.feed(a, 1.0f).fetch(y).scalar() == 2);
    run = session->partial_run(df::feeds(a, b), df::fetches(y, add_all));
    run.feed(a, 1.0f).feed(b, 1.0f);
  }
  while (session->run(w).scalar() != 6) std::this_thread::yield();
  while (steps_in_ps(cluster) != 0) std::this_thread::yield();
  // More often than a session may have partial runs: the ended partial runs do not count.
  for (int round = 0; round < 300; ++round) {
    auto run = session->partial_run(df::feeds(a, b), df::fetches(y));
    if (round % 2 == 0) CHECK(run.feed(a, 1.0f).fetch(y).scalar() == 2);
  }
  auto run = session->partial_run(df::feeds(a, b), df::fetches(y, add_all));
  session.reset();
  CHECK(run.feed(a, 1.0f).feed(b, 1.0f).fetch(y).scalar() == 2);
}

TEST_CASE("partial runs at a remote master run side by side, and threads share one") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  TwoHalves model;
  df::Session session(model.graph, {.target = partial_master(cluster)});
  const auto begin = [&] { return session.partial_run(df::feeds(model.a, model.b), df::fetches(model.y, model.z)); };
  auto first = begin(), second = begin(), third = begin();
  second.feed(model.a, 2.0f);
  third.feed(model.a, 3.0f);
  first.feed(model.a, 1.0f);
  CHECK(third.fetch(model.y).scalar() == 4);
  CHECK(first.fetch(model.y).scalar() == 2);
  CHECK(second.feed(model.b, 10.0f).fetch(model.z).scalar() == 13);
  CHECK(second.fetch(model.y).scalar() == 3);

  for (int round = 0; round < 20; ++round) {
    auto run = begin();
    std::atomic<int> num_fed = 0, num_fetched = 0;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        num_fed += code_of([&] { run.feed(model.a, static_cast<float>(round)); }) == df::Code::ok ? 1 : 0;
        code_of([&] { run.feed(model.b, 1.0f); });
      });
    }
    threads.clear();
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        code_of([&] { num_fetched += run.fetch(model.z).scalar() == static_cast<float>(round + 2) ? 1 : 0; });
      });
    }
    threads.clear();
    CHECK(num_fed == 1);
    CHECK(num_fetched == 1);
  }
}

TEST_CASE("a fetch at a remote master waits for what another step puts into the queue that it depends on") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {}), y = df::placeholder<float>(graph, {});
  const auto on = graph.device("/job:ps/task:0");
  df::FifoQueue<float> queue(graph, {.capacity = 3});
  const auto put = queue.enqueue(x);
  const auto sum = queue.dequeue() + y;
  df::Session session(graph, {.target = partial_master(cluster)});
  auto run = session.partial_run(df::feeds(y), df::fetches(sum));
  run.feed(y, 1.0f);
  auto value = std::async(std::launch::async, [&] { return run.fetch(sum).scalar(); });
  session.run({{x, df::Tensor<float>(41.0f)}}, put);
  CHECK(value.get() == 42);
}

TEST_CASE("the trace of a partial run at a remote master tells of the whole step, in all tasks") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  TwoHalves model;
  df::Session session(model.graph, {.target = partial_master(cluster)});
  df::RunOptions traced;
  traced.trace = true;
  df::RunMetadata metadata;
  auto run = session.partial_run(traced, &metadata, df::feeds(model.a, model.b), df::fetches(model.y, model.z));
  run.feed(model.a, 1.0f).fetch(model.y);
  run.feed(model.b, 1.0f).fetch(model.z);
  int num_found = 0;
  for (const df::NodeStats& node : metadata.stats.nodes) num_found += node.node == "y" || node.node == "z" ? 1 : 0;
  CHECK(num_found == 2);
}

TEST_CASE("a partial run whose remote master is lost is told so, and so are those who wait; another is begun anew") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  TwoHalves model;
  df::Session session(model.graph, {.target = partial_master(cluster)});
  const auto begin = [&] { return session.partial_run(df::feeds(model.a, model.b), df::fetches(model.y, model.z)); };
  auto run = begin();
  run.feed(model.a, 1.0f).fetch(model.y);
  cluster.stop("worker", 0);
  const df::Status lost = status_of([&] { run.feed(model.b, 1.0f).fetch(model.z); });
  CHECK(lost.code() == df::Code::unavailable);
  CHECK(mentions(lost, "/job:worker/replica:0/task:0"));
  CHECK(status_of([&] { run.finish(); }) == lost);
  CHECK(code_of([&] { begin(); }) == df::Code::unavailable);
  cluster.start("worker", 0);
  df::Status error;
  do {
    error = status_of([&] { begin(); });
  } while (error.code() == df::Code::unavailable);
  CHECK(error.code() == df::Code::aborted);
  df::Session again(model.graph, {.target = partial_master(cluster)});
  auto next = again.partial_run(df::feeds(model.a, model.b), df::fetches(model.z));
  CHECK(next.feed(model.a, 1.0f).feed(model.b, 1.0f).fetch(model.z).scalar() == 3);
}

TEST_CASE("a partial run is the last that holds its session at a remote master, and lets go of it at any time") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  TwoHalves model;
  for (int round = 0; round < 30; ++round) {
    auto run = std::make_optional(df::Session(model.graph, {.target = partial_master(cluster)})
                                      .partial_run(df::feeds(model.a, model.b), df::fetches(model.z)));
    run->feed(model.a, 1.0f);
    if (round % 3 == 0) run->feed(model.b, 1.0f);
    if (round % 3 == 1) CHECK(run->feed(model.b, 1.0f).fetch(model.z).scalar() == 3);
    if (round % 5 == 4) cluster.stop("worker", 0);
    run.reset();
    if (round % 5 == 4) cluster.start("worker", 0);
  }
}
