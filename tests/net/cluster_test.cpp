#include <dflow/net/server.hpp>

#include <catch2/catch.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster_harness.hpp"
#include "loopback_spec.hpp"
#include "support/end_when_cancelled.hpp"
#include "support/errors.hpp"

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

/// Ends when its step is cancelled.
struct Held : df::Op<"Held", df::TypeList<float>> {
  static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
/// A branch that is never taken.
struct NeverTaken : df::Op<"NeverTaken", df::TypeList<float>> {
  static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }
};
constexpr auto held_ops = df::standard_ops + df::ops<Held, NeverTaken>;
std::atomic<std::promise<void>*> held_begun{nullptr};

}  // namespace

template <>
struct dflow::Kernel<Held, dflow::Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    end_when_cancelled(context, std::move(done));
    if (std::promise<void>* begun = held_begun.exchange(nullptr)) begun->set_value();
  }
};

template <>
struct dflow::Kernel<NeverTaken, dflow::Cpu, float> {
  static constexpr bool makes_dead_outputs = true;
  void operator()(KernelContext& context) const { context.set_output_dead(0); }
};

TEST_CASE("a step runs over two tasks: what one computes the other reads") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {2});
  const auto there = [&] {
    const auto on = graph.device("/job:ps/task:0");
    return x * 2.0f;
  }();
  const auto here = [&] {
    const auto on = graph.device("/job:worker/task:0");
    return there + 1.0f;
  }();
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  for (int i = 0; i < 3; ++i) {
    const auto value = static_cast<float>(i);
    const df::Tensor<float> got = session.run({{x, df::Tensor<float>({2}, {value, 10})}}, here);
    CHECK(got(0) == 2 * value + 1);
    CHECK(got(1) == 21);
  }
  const auto [a, b] = session.run({{x, df::Tensor<float>({2}, {1, 2})}}, there, here);
  CHECK(a(1) == 4);
  CHECK(b(1) == 5);
}

TEST_CASE("variables on a parameter server are shared by the sessions of all tasks") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 2}});
  const auto build = [](df::Graph& graph) {
    const auto on = graph.device("/job:ps/task:0");
    return df::Variable<float>(graph, df::Tensor<float>({2}, {1, 2}), {.name = "w"});
  };
  df::Graph first_graph, second_graph;
  auto first = build(first_graph), second = build(second_graph);
  const auto add = first.assign_add(df::constant(first_graph, df::Tensor<float>({2}, {10, 20})));
  df::Session first_session(first_graph, {.target = cluster.server("worker", 0).target()});
  df::Session second_session(second_graph, {.target = cluster.server("worker", 1).target()});
  CHECK_THROWS_WITH(second_session.run(second.read()), Catch::Contains("w") && Catch::Contains("/job:ps"));
  first_session.run(df::initialize_variables(first_graph));
  for (int i = 0; i < 3; ++i) first_session.run(add);
  CHECK(second_session.run(second.read())(1) == 62);
}

TEST_CASE("a model trains over two parameter servers as it does alone, bit for bit") {
  const auto losses = [](df::Graph& graph, df::SessionOptions options, const std::vector<std::string>& places) {
    auto x = df::placeholder<float>(graph, {4, 3});
    std::vector<df::Variable<float>> variables;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto on = graph.device(places[i]);
      variables.emplace_back(graph,
                             df::Tensor<float>::full(i == 0 ? df::Shape({3, 5}) : df::Shape({5, 2}), 0.1f + 0.2f * i),
                             df::VariableOptions{.name = "w" + std::to_string(i)});
    }
    const auto on = graph.device(places[2]);
    auto y = df::matmul(df::tanh(df::matmul(x, variables[0])), variables[1]);
    auto loss = df::reduce_mean(df::square(y - 0.5f));
    auto train = df::train::Adam(0.05f).minimize(loss);
    df::Session session(graph, std::move(options));
    session.run(df::initialize_variables(graph));
    df::Tensor<float> batch({4, 3});
    for (std::size_t i = 0; i < 12; ++i) batch.span()[i] = 0.1f * static_cast<float>(i) - 0.6f;
    std::vector<float> values;
    for (int i = 0; i < 20; ++i) values.push_back(session.run({{x, batch}}, loss, train).scalar());
    return values;
  };
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  df::Graph spread, alone;
  const std::vector<float> got = losses(spread, {.target = cluster.server("worker", 0).target()},
                                        {"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"});
  const std::vector<float> expected = losses(alone, {}, {"", "", ""});
  CHECK(got == expected);
  CHECK(got.back() < got.front());
}

TEST_CASE("tensors of all sizes and element types travel, also empty ones and strings") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  std::vector<df::AnyOutput> sent;
  std::vector<df::AnyTensor> fed;
  std::vector<df::Feed> feeds;
  df::for_each_type<df::AllTypes>([&]<class T>() {
    for (const std::int64_t size : {0, 1, 1000, 40'000}) {
      auto x = df::placeholder<T>(graph, {df::dynamic});
      df::Tensor<T> value(df::Shape({size}));
      if constexpr (std::is_same_v<T, std::string>) {
        for (auto& text : value.span()) text = "text " + std::to_string(&text - value.span().data());
      } else {
        for (auto& element : value.span()) element = T{};
        if (size > 0) value.span().back() = static_cast<T>(1);
      }
      const auto on = graph.device("/job:ps/task:0");
      sent.push_back(df::identity(x));
      fed.push_back(value);
      feeds.push_back({x, value});
    }
  });
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  std::vector<df::AnyTensor> got(sent.size());
  session.run_erased({}, nullptr, feeds, sent, {}, got);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    INFO(fed[i].to_string(2));
    CHECK(df::bitwise_equal(got[i], fed[i]));
  }
}

TEST_CASE("an error in another task is the step's, with op, node, device, task and the line of the program") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<std::int32_t>(graph, {});
  const auto on = graph.device("/job:ps/task:0");
  const auto bad = df::gather(df::constant(graph, df::Tensor<float>({2}, {1, 2})), x);
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  try {
    static_cast<void>(session.run({{x, df::Tensor<std::int32_t>(7)}}, bad));
    FAIL("the index was taken");
  } catch (const df::Error& error) {
    const df::Status& status = error.status();
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(std::string(status.device()).find("/job:ps/replica:0/task:0") == 0);
    CHECK(status.task() == "/job:ps/replica:0/task:0");
    CHECK_FALSE(status.node().empty());
    CHECK(std::string(status.where().file_name()).find("cluster_test") != std::string::npos);
  }
  CHECK(session.run({{x, df::Tensor<std::int32_t>(1)}}, bad).scalar() == 2);
}

TEST_CASE("a fetch that is dead in another task is named, with op, device and the line of the program") {
  df::net::ServerOptions options;
  options.ops = held_ops;
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {});
  const std::uint32_t line = __LINE__ + 3;
  const auto y = [&] {
    const auto on = graph.device("/job:ps/task:0");
    return df::apply<NeverTaken>(x, {}, {.name = "other_side"});
  }();
  df::Session session(graph, {.ops = held_ops, .target = cluster.server("worker", 0).target()});
  for (const bool is_partial : {false, true}) {
    df::Status status;
    try {
      if (is_partial) {
        session.partial_run(df::feeds(x), df::fetches(y)).feed(x, 1.0f).fetch(y);
      } else {
        session.run({{x, 1.0f}}, y);
      }
    } catch (const df::Error& error) {
      status = error.status();
    }
    INFO(status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(status.node() == "other_side");
    CHECK(status.op() == "NeverTaken");
    CHECK(status.device() == "/job:ps/replica:0/task:0/device:CPU:0");
    CHECK(status.where().line() == line);
  }
}

TEST_CASE("a session whose tasks have not been started fails at its deadline, with the list of them") {
  df::net::ServerOptions options;
  MemoryCluster cluster({{"worker", 1}}, options);
  df::net::ClusterSpec spec = cluster.spec_of("worker", 0);
  spec.add_task("ps", 0, "nowhere0");
  spec.add_task("ps", 1, "nowhere1");
  cluster.stop("worker", 0);
  cluster.options().startup_timeout = std::chrono::milliseconds(200);
  df::net::Server server(spec, cluster.options());
  df::Graph graph;
  try {
    df::Session session(graph, {.target = server.target()});
    FAIL("a session was made");
  } catch (const df::Error& error) {
    CHECK(error.code() == df::Code::unavailable);
    CHECK_THAT(error.what(), Catch::Contains("2 of 2") && Catch::Contains("/job:ps/replica:0/task:0") &&
                                 Catch::Contains("/job:ps/replica:0/task:1"));
  }
  CHECK_NOTHROW(df::Session(graph, {.target = server.target({"/job:worker"})}));
}

TEST_CASE("a step that waits in another task ends at its deadline, when it is stopped, and leaves nothing behind") {
  df::net::ServerOptions options;
  options.ops = held_ops;
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  const auto on = graph.device("/job:ps/task:0");
  const auto held = df::apply<Held>(x);
  const auto free = x * 2.0f;
  df::Session session(graph, {.ops = held_ops, .target = cluster.server("worker", 0).target()});
  const auto code_of = [&](const df::RunOptions& run) {
    try {
      static_cast<void>(session.run(run, {{x, df::Tensor<float>(1.0f)}}, held));
      return df::Code::ok;
    } catch (const df::Error& error) {
      return error.code();
    }
  };
  CHECK(code_of({.deadline = std::chrono::milliseconds(50)}) == df::Code::deadline_exceeded);
  const df::Status late = status_of([&] {
    session.run({.deadline = std::chrono::milliseconds(50)}, {{x, df::Tensor<float>(1.0f)}}, held);
  });
  INFO(late.to_string());
  CHECK(mentions(late, "/job:ps/replica:0/task:0"));  // by this task, or by that one
  std::stop_source stop;
  std::promise<void> begun;
  held_begun = &begun;
  std::thread stopper([&] {
    begun.get_future().wait();
    stop.request_stop();
  });
  CHECK(code_of({.stop = stop.get_token()}) == df::Code::cancelled);
  stopper.join();
  held_begun = nullptr;
  CHECK(session.run({{x, df::Tensor<float>(2.0f)}}, free).scalar() == 4);
}

TEST_CASE("a parameter server that stops is named, and a session made anew goes on when it is back") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  const auto on = graph.device("/job:ps/task:0");
  df::Variable<float> w(graph, df::Tensor<float>(5.0f), {.name = "w"});
  const auto read = w.read();
  auto session =
      std::make_unique<df::Session>(graph, df::SessionOptions{.target = cluster.server("worker", 0).target()});
  session->run(df::initialize_variables(graph));
  CHECK(session->run(read).scalar() == 5);
  cluster.stop("ps", 0);
  try {
    static_cast<void>(session->run(read));
    FAIL("a server that has stopped has answered");
  } catch (const df::Error& error) {
    CHECK(error.code() == df::Code::unavailable);
    CHECK_THAT(error.what(), Catch::Contains("/job:ps/replica:0/task:0"));
  }
  // The thread that loses the connection logs this line, before the step ends or after.
  while (!cluster.log().has("/job:ps/replica:0/task:0 has stopped")) std::this_thread::yield();
  cluster.start("ps", 0);
  // The task's values are gone: a run gives an error, never silent zeros. The error comes as soon as the old
  // connections are known to be gone.
  const auto error_of_run = [&] {
    try {
      static_cast<void>(session->run(read));
      return df::Status();
    } catch (const df::Error& error) {
      return error.status();
    }
  };
  df::Status error;
  do {
    error = error_of_run();
  } while (error.code() == df::Code::unavailable);
  CHECK(error.code() == df::Code::aborted);
  CHECK_THAT(error.to_string(), Catch::Contains("started anew"));
  session = std::make_unique<df::Session>(graph, df::SessionOptions{.target = cluster.server("worker", 0).target()});
  CHECK_THROWS_AS(session->run(read), df::Error);
  session->run(df::initialize_variables(graph));
  CHECK(session->run(read).scalar() == 5);
}

TEST_CASE("asynchronous and prepared steps run over tasks, three at once from three threads") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto y = [&] {
    const auto on = graph.device("/job:ps/task:0");
    return x * 3.0f;
  }();
  auto z = [&] {
    const auto on = graph.device("/job:ps/task:1");
    return y + 1.0f;
  }();
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  auto step = session.prepare(df::feeds(x), df::fetches(z));
  std::vector<std::future<int>> wrong;
  for (int t = 0; t < 3; ++t) {
    wrong.push_back(std::async(std::launch::async, [&, t] {
      int count = 0;
      for (int i = 0; i < 100; ++i) {
        const auto value = static_cast<float>(1000 * t + i);
        count += step(df::Tensor<float>(value)).scalar() != 3 * value + 1;
      }
      return count;
    }));
  }
  for (auto& count : wrong) CHECK(count.get() == 0);
  std::promise<float> result;
  session.run_async({{x, df::Tensor<float>(2.0f)}}, z, [&](const df::Status& status, const df::Tensor<float>& value) {
    result.set_value(status.ok() ? value.scalar() : -1);
  });
  CHECK(result.get_future().get() == 7);
}

TEST_CASE("the statistics of a step have what all tasks did, each in threads of its own") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto sum = x * 1.0f;
  for (int i = 0; i < 2; ++i) {
    const auto on = graph.device("/job:ps/task:" + std::to_string(i));
    sum = sum + 2.0f;
  }
  df::Session session(graph, {.target = cluster.server("worker", 0).target()});
  df::RunMetadata metadata;
  static_cast<void>(session.run({.trace = true}, &metadata, {{x, df::Tensor<float>(1.0f)}}, sum));
  std::map<std::string, std::set<int>> threads;
  for (const df::NodeStats& node : metadata.stats.nodes) {
    threads[node.device].insert(node.thread);
    CHECK(node.end_ns >= node.start_ns);
  }
  CHECK(threads.size() == 3);
  for (const auto& [device, of_device] : threads) {
    for (const auto& [other, of_other] : threads) {
      for (const int thread : of_device) CHECK((other == device || of_other.count(thread) == 0));
    }
  }
}

TEST_CASE("a task that is all of its cluster has nobody to leave out: its filters need match nobody") {
  const df::net::Server server(df::net::ClusterSpec::local(), {.num_threads = 1});
  df::Graph graph;
  const auto x = df::constant(graph, 2.0f);
  df::Session session(graph, {.target = server.target({"/job:ps", "/job:worker/task:1"})});
  CHECK(session.run(x).scalar() == 2);
  CHECK_THROWS_AS(server.target({"no filter"}), df::Error);
}

TEST_CASE("a client that is no task runs steps on a cluster") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto y = x * 2.0f;
  df::Session session(graph, {.target = df::net::connect(cluster.spec(), cluster.options())});
  CHECK(session.run({{x, df::Tensor<float>(4.0f)}}, y).scalar() == 8);
  CHECK(session.devices().empty());
}

TEST_CASE("a task that is lost after its own part has ended ends the step, and is named") {
  df::net::ServerOptions options;
  options.ops = held_ops;
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}}, options);
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  const auto there = [&](const std::string& device, const df::Output<float>& value) {
    const auto on = graph.device(device);
    return value * 2.0f;
  };
  const auto first = there("/job:ps/task:0", x);
  const auto held = [&] {
    const auto on = graph.device("/job:ps/task:1");
    return df::apply<Held>(first);
  }();
  for (int round = 0; round < 3; ++round) {
    df::Session session(graph, {.ops = held_ops, .target = cluster.server("worker", 0).target()});
    std::promise<void> begun;
    held_begun = &begun;
    std::promise<df::Status> ended;
    session.run_async({.deadline = std::chrono::seconds(60)}, {{x, df::Tensor<float>(1.0f)}}, held,
                      [&](const df::Status& status, const df::Tensor<float>&) { ended.set_value(status); });
    begun.get_future().wait();  // task 0 has then sent its tensors
    cluster.stop("ps", 0);
    const df::Status status = ended.get_future().get();
    CHECK(status.code() == df::Code::unavailable);
    CHECK(status.to_string().find("/job:ps/replica:0/task:0") != std::string::npos);
    cluster.start("ps", 0);
  }
}

TEST_CASE("servers start and stop cleanly, with sessions and steps under way") {
  for (int i = 0; i < 20; ++i) {
    MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
    df::Graph graph;
    auto x = df::placeholder<float>(graph, {});
    const auto on = graph.device("/job:ps/task:0");
    auto y = x * 2.0f;
    df::Session session(graph, {.target = cluster.server("worker", 0).target()});
    std::vector<std::future<void>> ended;
    for (int k = 0; k < 3; ++k) {
      auto promise = std::make_shared<std::promise<void>>();
      ended.push_back(promise->get_future());
      session.run_async({{x, df::Tensor<float>(4.0f)}}, y,
                        [promise](const df::Status&, const df::Tensor<float>&) { promise->set_value(); });
    }
    if (i % 2 == 0) cluster.stop("ps", 0);
    for (auto& end : ended) end.get();
  }
}

TEST_CASE("a server at TCP needs a secret, TLS, or to be told that it is insecure, on loopback too") {
  const bool has_own_transport = GENERATE(false, true);
  const auto server_at = [&](const std::string& address, bool is_insecure, const std::string& secret) {
    df::net::ClusterSpec spec;
    spec.add_task("ps", 0, address);
    spec.set_task("ps", 0);
    spec.set_insecure(is_insecure);
    spec.set_secret(secret);
    df::net::ServerOptions options{.num_threads = 1};
    if (has_own_transport) options.transport = std::make_shared<df::net::AsioTransport>();
    df::net::Server server(spec, options);
    return server.address();
  };
  for (const std::string address : {"0.0.0.0:0", "127.evil.example:0", "[::]:0", "127.0.0.1:0", "localhost:0"}) {
    const df::Status status = status_of([&] { return server_at(address, false, ""); });
    INFO(status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    for (const std::string& part : {"'" + address + "' of /job:ps/replica:0/task:0", std::string("--secret_file"),
                                    std::string("unix:///path"), std::string("TLS"), std::string("--insecure")}) {
      CHECK(mentions(status, part));
    }
  }
  for (const char* const address : {"0.0.0.0:0", "127.0.0.1:0"}) {
    CHECK_NOTHROW(server_at(address, false, "sixteen bytes or more"));
    CHECK_NOTHROW(server_at(address, true, ""));
  }
}

TEST_CASE("a process that is no task of the cluster is told so, and what it can be") {
  df::net::ClusterSpec spec = df::testing::loopback_spec("127.0.0.1:1");
  CHECK_THROWS_WITH(df::net::Server(spec), Catch::Contains("which of its tasks this process is: --job and --task"));
  CHECK_THROWS_WITH(df::net::Server(df::net::ClusterSpec()), Catch::Contains("which of its tasks this process is"));
  spec.set_task("evaluator", 0);
  CHECK_THROWS_WITH(df::net::Server(spec, {.num_threads = 1}),
                    Catch::Contains("'/job:evaluator/replica:0/task:0' has no address"));
  spec.set_bind_address("127.0.0.1:0");
  CHECK_NOTHROW(df::net::Server(spec, {.num_threads = 1}));
}

TEST_CASE("tasks reach each other by TCP, with a secret, and who does not know it is refused") {
  df::net::ClusterSpec spec;
  spec.add_task("ps", 0, "127.0.0.1:0");
  spec.set_task("ps", 0);
  spec.set_secret("the secret of the test");
  auto log = std::make_shared<df::testing::ServerLog>();
  df::net::ServerOptions options;
  options.num_threads = 1;
  options.startup_timeout = std::chrono::seconds(20);
  options.log = [log](std::string_view line) {
    const std::lock_guard lock(log->mutex);
    log->lines.emplace_back(line);
  };
  options.callbacks = std::make_shared<df::InlinePool>();
  df::net::Server server(spec, options);
  const auto client = [&](const std::string& secret) {
    df::net::ClusterSpec cluster;
    cluster.add_task("ps", 0, server.address());
    cluster.set_secret(secret);
    df::Graph graph;
    auto x = df::placeholder<float>(graph, {df::dynamic});
    auto y = x * 2.0f;
    df::Session session(graph, {.target = df::net::connect(cluster, options)});
    // Large enough to go in chunks on the connection for large tensors.
    return session.run({{x, df::Tensor<float>::full({3'000'000}, 4.0f)}}, y).span().back();
  };
  CHECK(client("the secret of the test") == 8);
  const df::Status refused = status_of([&] { client("another secret, as long"); });
  CHECK(refused.code() == df::Code::unauthenticated);  // not worth another attempt
  CHECK(mentions(refused, "different secrets of the cluster"));
  CHECK(mentions(refused, server.address()));
  // The client does not wait for any other task either.
  df::net::ClusterSpec with_missing;
  with_missing.add_task("ps", 0, server.address());
  with_missing.add_task("ps", 1, "127.0.0.1:1");
  with_missing.set_secret("another secret, as long");
  df::net::ServerOptions patient = options;
  patient.startup_timeout = std::chrono::hours(1);
  df::Graph none;
  const df::Status at_once = status_of([&] { df::Session(none, {.target = df::net::connect(with_missing, patient)}); });
  CHECK(at_once.code() == df::Code::unauthenticated);
  CHECK(log->has("were given different secrets of the cluster"));
  CHECK(client("the secret of the test") == 8);
}
