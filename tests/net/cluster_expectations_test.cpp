// The expectations of TensorFlow's tests of its distributed runtime, for clusters here: rendezvous, executors, masters
// and sessions.
#include <dflow/net/client/inspect.hpp>
#include <dflow/net/server.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "cluster_harness.hpp"
#include "loopback_spec.hpp"
#include "support/end_when_cancelled.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <cmath>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace df = dflow;
using df::testing::loopback_spec;
using df::testing::MemoryCluster;

namespace {

/// A branch that is not taken.
struct NotTaken : df::Op<"NotTaken", df::TypeList<float>> {
  static void infer(df::InferContext& context) { context.set_output(0, context.input(0)); }
};
/// Ends when its step does.
struct UntilTheEnd : df::Op<"UntilTheEnd", df::TypeList<float>> {
  static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto expecting_ops = df::standard_ops + df::ops<NotTaken, UntilTheEnd>;
std::atomic<int> not_ended{0};

df::net::ServerOptions expecting_options() {
  df::net::ServerOptions options;
  options.ops = expecting_ops;
  return options;
}

std::string task_device(const std::string& job, int task) { return "/job:" + job + "/task:" + std::to_string(task); }

}  // namespace

template <>
struct dflow::Kernel<NotTaken, dflow::Cpu, float> {
  static constexpr bool makes_dead_outputs = true;
  void operator()(KernelContext& context) const { context.set_output_dead(0); }
};

template <>
struct dflow::Kernel<UntilTheEnd, dflow::Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    ++not_ended;
    end_when_cancelled(context, [done = std::move(done)](const Status& why) mutable {
      --not_ended;
      done(why);
    });
  }
};

TEST_CASE("a random tree of additions over three tasks is their sum", "[net]") {  // executor_test RandomTree
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  std::mt19937 random(1);
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  std::vector<df::Output<float>> leaves(512, x);
  while (leaves.size() > 1) {
    const auto take = [&] {
      const std::size_t at = random() % leaves.size();
      std::swap(leaves[at], leaves.back());
      const auto leaf = leaves.back();
      leaves.pop_back();
      return leaf;
    };
    const auto a = take(), b = take();
    const auto on = graph.device(random() % 3 == 0 ? task_device("worker", 0) : task_device("ps", random() % 2 == 0));
    leaves.push_back(a + b);
  }
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  CHECK(session.run({{x, df::Tensor<float>(1.0f)}}, leaves[0]).scalar() == 512);
}

TEST_CASE("a thousand and twenty-four additions to a variable on another task in one step are all of them",
          "[net]") {  // ConcurrentAddAssign
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  const auto on = graph.device("/job:ps/task:0");
  df::Variable<float> v(graph, df::Tensor<float>(1.0f), {.name = "v"});
  const auto one = df::constant(graph, 1.0f);
  std::vector<df::Operation> additions;  // in any order
  for (int i = 0; i < 1024; ++i) additions.push_back(v.assign_add(one));
  const auto all = df::group(additions);
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  session.run(df::initialize_variables(graph));
  session.run(all);
  CHECK(session.run(v.read()).scalar() == 1025);
}

TEST_CASE("what is dead in one task is dead in the next, and what needs it does not run",
          "[net]") {  // RecvInvalidDtype...
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}}, expecting_options());
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  const auto dead = [&] {
    const auto on = graph.device(task_device("ps", 0));
    return df::apply<NotTaken>(x);
  }();
  const auto next = [&] {
    const auto on = graph.device(task_device("ps", 1));
    return df::apply<UntilTheEnd>(dead + 1.0f);  // it would wait for ever
  }();
  df::Session session(graph, {.ops = expecting_ops, .target = cluster.server("worker", 0).target()});
  CHECK(code_of([&] { return session.run({{x, df::Tensor<float>(1.0f)}}, next); }) == df::Code::invalid_argument);
  CHECK(not_ended == 0);
}

TEST_CASE("the dominant eigenvalue of [[3, 2], [-1, 0]] comes out of steps over two tasks", "[net]") {  // master_test
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {2, 1});
  const auto product = [&] {
    const auto on = graph.device("/job:ps/task:0");
    return df::matmul(df::constant(graph, df::Tensor<float>({2, 2}, {3, 2, -1, 0})), x);
  }();
  const auto on = graph.device("/job:worker/task:0");
  const auto next = product / df::sqrt(df::reduce_sum(df::square(product)));
  const auto lambda = df::reduce_sum(x * product) / df::reduce_sum(df::square(x));
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  df::Tensor<float> value({2, 1}, {0.6f, 0.8f});
  float last = 0;
  for (int i = 0; i < 60; ++i) {
    const auto [following, estimate] = session.run({{x, value}}, next, lambda);
    value = following;
    last = estimate.scalar();
  }
  CHECK(last == Approx(2).epsilon(1e-4));
  CHECK(value(0, 0) / value(1, 0) == Approx(-2).epsilon(1e-3));
}

TEST_CASE("sessions see what their graph grows by, from several threads, and leave nothing when they end", "[net]") {
  // master_test CreateClose, ListDevices, ExtendGraph, ConcurrentExtendAndRun
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  const auto num_sessions = [&] {
    std::uint64_t count = 0;
    for (const auto& report : df::net::inspect(cluster.spec(), {.transport = cluster.options().transport})) {
      count += report.said.num_sessions;
    }
    return count;
  };
  for (int round = 0; round < 3; ++round) {
    df::Graph graph;
    auto x = df::placeholder<float>(graph, {});
    df::Session session(graph, {.target = cluster.server("worker", 0).target()});
    auto y = x;
    for (int i = 1; i <= 5; ++i) {
      const auto on = graph.device("/job:ps/task:0");
      y = y + 1.0f;
      std::vector<std::future<float>> got;
      for (int t = 0; t < 3; ++t) {
        got.push_back(std::async(std::launch::async, [&, y] {
          return session.run({{x, df::Tensor<float>(0.0f)}}, y).scalar();
        }));
      }
      for (auto& value : got) CHECK(value.get() == static_cast<float>(i));
    }
    CHECK(num_sessions() >= 1);
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (num_sessions() != 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  CHECK(num_sessions() == 0);
}

TEST_CASE("an error in one task ends the parts of all others, and its text comes back",
          "[net]") {  // grpc_session_test Error
  MemoryCluster cluster({{"ps", 3}, {"worker", 1}}, expecting_options());
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto index = df::placeholder<std::int32_t>(graph, {});
  std::vector<df::AnyOutput> fetches;
  for (int i = 0; i < 2; ++i) {
    const auto on = graph.device(task_device("ps", i));
    fetches.push_back(df::apply<UntilTheEnd>(x));
  }
  {
    const auto on = graph.device(task_device("ps", 2));
    fetches.push_back(df::gather(df::constant(graph, df::Tensor<float>({2}, {1, 2})), index));
  }
  df::Session session(graph, {.ops = expecting_ops, .target = cluster.server("worker", 0).target()});
  for (int round = 0; round < 3; ++round) {
    std::vector<df::AnyTensor> got(fetches.size());
    const std::vector<df::Feed> feeds{{x, df::Tensor<float>(1.0f)}, {index, df::Tensor<std::int32_t>(9)}};
    const df::Status status = status_of([&] {
      session.run_erased({}, nullptr, feeds, fetches, {}, got);
      return 0;
    });
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(status.task() == "/job:ps/replica:0/task:2");
    CHECK(mentions(status, "9"));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (not_ended != 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    CHECK(not_ended == 0);
  }
}

TEST_CASE("thirty million elements are fed and fetched", "[net][long]") {  // server_lib_test LargeFetch, LargeFeed
  df::net::ClusterSpec spec = loopback_spec();
  spec.set_task("ps", 0);
  df::net::ServerOptions options;
  options.num_threads = 2;
  options.log = [](std::string_view) {};
  df::net::Server server(spec, options);
  const df::net::ClusterSpec cluster = loopback_spec(server.address());
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  const auto on = graph.device("/job:ps/task:0");
  const auto y = df::identity(x);
  df::Session session(graph, {.target = df::net::connect(cluster, options)});
  auto value = df::Tensor<float>::full({30'000'000}, 1.0f);
  value.span().back() = 7;
  CHECK(df::bitwise_equal(session.run({{x, value}}, y), value));
}

TEST_CASE("a server at an address that is none, or that is taken, is an error that quotes it",
          "[net]") {  // InvalidPort
  const auto server_at = [](const std::string& address) {
    df::net::ClusterSpec spec = loopback_spec(address);
    spec.set_task("ps", 0);
    return df::net::Server(spec, {.num_threads = 1}).address();
  };
  for (const char* const bad : {"127.0.0.1:-1", "127.0.0.1:70000", "127.0.0.1:port"}) {
    const df::Status status = status_of([&] { return server_at(bad); });
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, bad));
  }
  df::net::ClusterSpec spec = loopback_spec();
  spec.set_task("ps", 0);
  const df::net::Server first(spec, {.num_threads = 1});
  CHECK(code_of([&] { return server_at(first.address()); }) == df::Code::already_exists);
}
