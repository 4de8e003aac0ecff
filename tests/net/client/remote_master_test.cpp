// Sessions that the master of another task keeps.
#include <dflow/net/client/remote_master.hpp>

#include <catch2/catch.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/client/inspect.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "../cluster_harness.hpp"
#include "support/errors.hpp"

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

/// An op that the servers in this file do not know.
struct Homemade : df::Op<"Homemade", df::TypeList<float>> {
  static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }
};

std::shared_ptr<df::net::RemoteMaster> master_of(MemoryCluster& cluster, const std::string& task = "/job:worker/task:0",
                                                 std::vector<std::string> filters = {}) {
  return df::net::remote_master(cluster.spec(), task, std::move(filters), cluster.options());
}

std::uint64_t sessions_in(MemoryCluster& cluster, const std::string& task) {
  for (const auto& report : df::net::inspect(cluster.spec(), {.transport = cluster.options().transport})) {
    if (report.task == task && report.status.ok()) return report.said.num_sessions;
  }
  return 0;
}

template <class Build>
auto placed_on(df::Graph& graph, const std::string& device, Build&& build) {
  const auto on = graph.device(device);
  return build();
}

}  // namespace

TEST_CASE("a session of a remote master is run as any other: typed, prepared, asynchronous, and as its graph grows") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  auto y = placed_on(graph, "/job:ps/task:0", [&] { return x * 2.0f; });
  auto z = placed_on(graph, "/job:ps/task:1", [&] { return y + 1.0f; });
  df::Session session(graph, {.target = master_of(cluster)});
  CHECK(session.devices().empty());
  CHECK(session.placement_log().empty());
  const df::Tensor<float> two({2}, {1, 2});
  CHECK(session.run({{x, two}}, z)(1) == 5);
  const auto [same, doubled, more] = session.run({{x, two}}, x, y, z);
  CHECK(same(1) == 2);
  CHECK(doubled(1) == 4);
  CHECK(more(0) == 3);
  CHECK(session.run({{y, two}}, z)(0) == 2);  // an edge in the middle
  // The graph grows by nodes on top of the old nodes.
  auto grown = df::reduce_sum(z * z);
  CHECK(session.run({{x, two}}, grown).scalar() == 34);
  auto words = df::constant(graph, df::Tensor<std::string>({2}, {"a", "bc"}));
  CHECK(session.run(words)(1) == "bc");
  auto empty = df::placeholder<std::int32_t>(graph, {0, 3});
  CHECK(session.run({{empty, df::Tensor<std::int32_t>({0, 3})}}, df::identity(empty)).num_elements() == 0);
  // Large enough to go in chunks, both ways, alone and with others.
  const auto large = df::Tensor<float>::full({1'000'000}, 4.0f);
  CHECK(session.run({{x, large}}, z).span().back() == 9);
  const auto [large_y, large_z] = session.run({{x, large}}, y, z);
  CHECK(large_y.span().back() == 8);
  CHECK(large_z.span().front() == 9);
  auto step = session.prepare(df::feeds(x), df::fetches(grown, z));
  for (int i = 0; i < 5; ++i)
    CHECK(std::get<0>(step(df::Tensor<float>({1}, {1.0f * i}))).scalar() == (2 * i + 1) * (2 * i + 1));
  std::promise<float> result;
  session.run_async({{x, two}}, z, [&](const df::Status& status, const df::Tensor<float>& value) {
    result.set_value(status.ok() ? value(1) : -1);
  });
  CHECK(result.get_future().get() == 5);
  CHECK(code_of([&] { session.run({{x, df::Tensor<float>({1, 1}, {1.0f})}}, z); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { session.run(z); }) == df::Code::invalid_argument);  // a placeholder that is not fed
}

TEST_CASE("a model trains at a remote master as it does alone, bit for bit") {
  const auto losses = [](df::SessionOptions options, const std::string& device) {
    df::Graph graph({.seed = 3});
    const auto on = graph.device(device);
    auto x = df::placeholder<float>(graph, {4, 3});
    auto loss = df::reduce_mean(df::square(df::dense(df::tanh(df::dense(x, 5)), 2) - 0.5f));
    auto train = df::train::Adam(0.05f).minimize(loss);
    df::Session session(graph, std::move(options));
    session.run(df::initialize_variables(graph));
    df::Tensor<float> batch({4, 3});
    for (std::size_t i = 0; i < 12; ++i) batch.span()[i] = 0.1f * static_cast<float>(i) - 0.6f;
    std::vector<float> values;
    for (int i = 0; i < 10; ++i) values.push_back(session.run({{x, batch}}, loss, train).scalar());
    return values;
  };
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  CHECK(losses({.target = master_of(cluster)}, "/job:ps/task:0") == losses({}, ""));
}

TEST_CASE("errors at a remote master have op, node, device, task and the line of the program") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  const auto on = graph.device("/job:ps/task:0");
  const unsigned line = __LINE__ + 1;
  auto checked = df::reshape(x, df::Shape{4});
  df::Session session(graph, {.target = master_of(cluster)});
  const df::Status status = status_of([&] { session.run({{x, df::Tensor<float>({2}, {1, 2})}}, checked); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.op() == "Reshape");
  CHECK(status.node() == checked.node().name);
  CHECK(status.task() == "/job:ps/replica:0/task:0");
  CHECK(contains(status.device(), "/job:ps"));
  CHECK(status.where().line() == line);
  CHECK(session.run({{x, df::Tensor<float>({4}, {1, 2, 3, 4})}}, checked)(3) == 4);
}

TEST_CASE("an op that the master does not know is named, with the line, and other graphs are none the worse") {
  MemoryCluster cluster({{"worker", 1}});
  const auto master = master_of(cluster);
  df::Graph graph;
  auto x = df::constant(graph, 2.0f);
  df::Session session(graph, {.target = master});
  CHECK(session.run(x).scalar() == 2);
  const unsigned line = __LINE__ + 1;
  const auto unknown = df::apply<Homemade>(x);
  for (int i = 0; i < 2; ++i) {
    const df::Status status = status_of([&] { session.run(unknown); });
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, "Homemade"));
    CHECK(status.node() == unknown.node().name);
    CHECK(status.where().line() == line);
  }
  CHECK(session.run(x).scalar() == 2);  // compiled before
  CHECK(mentions(status_of([&] { df::Session(graph, {.target = master}); }), "Homemade"));
  df::Graph other;
  auto y = df::constant(other, 3.0f);
  CHECK(df::Session(other, {.target = master}).run(y).scalar() == 3);
}

TEST_CASE("tasks that are missing, the master too, are the error of making a session") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  df::Graph graph;
  auto x = df::constant(graph, 2.0f);
  cluster.stop("ps", 1);
  cluster.options().startup_timeout = std::chrono::milliseconds(100);
  const df::Status status = status_of([&] { df::Session(graph, {.target = master_of(cluster)}); });
  CHECK(status.code() == df::Code::unavailable);
  CHECK(mentions(status, "1 of 2 other tasks are missing: /job:ps/replica:0/task:1"));
  CHECK(df::Session(graph, {.target = master_of(cluster, "/job:worker/task:0", {"/job:ps/task:0"})}).run(x).scalar() ==
        2);
  const df::Status gone = status_of([&] { df::Session(graph, {.target = master_of(cluster, "/job:ps/task:1")}); });
  CHECK(gone.code() == df::Code::unavailable);
  CHECK(mentions(gone, "/job:ps/replica:0/task:1"));
  CHECK(code_of([&] { master_of(cluster, "/job:ps"); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { master_of(cluster, "/job:chief/task:0"); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { master_of(cluster, "/job:worker/task:0", {"no filter"}); }) == df::Code::invalid_argument);
  for (const df::Status& unmatched :
       {status_of([&] { master_of(cluster, "/job:worker/task:0", {"/job:sp"}); }), status_of([&] {
          cluster.server("worker", 0).target({"/job:ps", "/job:sp"});
        }),
        status_of([&] { df::net::reset(cluster.spec(), {}, {"/job:sp"}, cluster.options()); })}) {
    CHECK(unmatched.code() == df::Code::invalid_argument);
    CHECK(mentions(unmatched, "the filter '/job:sp' matches no task of the cluster"));
  }
  cluster.start("ps", 1);
  const df::Status both = status_of([&] { df::Session(graph, {.num_cpu_devices = 2, .target = master_of(cluster)}); });
  CHECK(both.code() == df::Code::invalid_argument);
  CHECK(mentions(both, "a session with a target cannot set the number of devices"));
}

TEST_CASE("a step at a remote master ends at its deadline and when it is stopped, everywhere") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  const auto on = graph.device("/job:ps/task:0");
  df::FifoQueue<float> queue(graph, {.capacity = 4, .shapes = {{}}});
  auto put = queue.enqueue(df::constant(graph, 7.0f));
  auto taken = queue.dequeue();
  df::Session session(graph, {.target = master_of(cluster)});
  CHECK(code_of([&] { session.run({.deadline = std::chrono::milliseconds(50)}, {}, taken); }) ==
        df::Code::deadline_exceeded);
  std::stop_source stop;
  std::promise<df::Status> ended;
  session.run_async({.stop = stop.get_token()}, {}, taken,
                    [&](const df::Status& status, const df::Tensor<float>&) { ended.set_value(status); });
  stop.request_stop();
  CHECK(ended.get_future().get().code() == df::Code::cancelled);
  // No step that would take an element waits any more.
  const auto running = [&] {
    for (const auto& report : df::net::inspect(cluster.spec(), {.transport = cluster.options().transport})) {
      if (report.task == "/job:ps/replica:0/task:0") return report.said.num_steps;
    }
    return std::uint64_t{1};
  };
  while (running() != 0) std::this_thread::yield();
  session.run(put);
  CHECK(session.run(taken).scalar() == 7);
}

TEST_CASE("the statistics of a step at a remote master have what all tasks did") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto sum = x * 1.0f;
  for (int i = 0; i < 2; ++i) {
    sum = placed_on(graph, "/job:ps/task:" + std::to_string(i), [&] { return sum + 2.0f; });
  }
  df::Session session(graph, {.target = master_of(cluster)});
  df::RunMetadata metadata;
  CHECK(session.run({.trace = true}, &metadata, {{x, df::Tensor<float>(1.0f)}}, sum).scalar() == 5);
  std::set<std::string> devices;
  for (const df::NodeStats& node : metadata.stats.nodes) devices.insert(node.device);
  CHECK(devices.size() == 3);
}

TEST_CASE("threads run steps of a session at a remote master while its graph grows") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto y = x * 3.0f;
  df::Session session(graph, {.target = master_of(cluster)});
  std::vector<std::future<int>> wrong;
  for (int t = 0; t < 3; ++t) {
    wrong.push_back(std::async(std::launch::async, [&, t] {
      int count = 0;
      for (int i = 0; i < 50; ++i) {
        const auto value = static_cast<float>(100 * t + i);
        count += session.run({{x, df::Tensor<float>(value)}}, y).scalar() != 3 * value;
      }
      return count;
    }));
  }
  auto grown = y;
  for (int i = 0; i < 20; ++i) {
    grown = grown + 1.0f;
    CHECK(session.run({{x, df::Tensor<float>(1.0f)}}, grown).scalar() == 4.0f + static_cast<float>(i));
  }
  for (auto& count : wrong) CHECK(count.get() == 0);
}

TEST_CASE("a prepared step of a remote master outlives its session, its graph and its target") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  {
    const auto step = [&] {
      df::Graph graph;
      const auto on = graph.device("/job:ps/task:0");
      auto x = df::placeholder<float>(graph, {});
      auto y = x * 3.0f;
      df::Session session(graph, {.target = master_of(cluster)});
      return session.prepare(df::feeds(x), df::fetches(y));
    }();
    CHECK(step(df::Tensor<float>(2.0f)).scalar() == 6);
    CHECK(sessions_in(cluster, "/job:ps/replica:0/task:0") == 1);
  }
  while (sessions_in(cluster, "/job:ps/replica:0/task:0") != 0) std::this_thread::yield();
}

TEST_CASE("a master that was started anew is said to be, and one that is lost is named") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto x = placed_on(graph, "/job:ps/task:0", [&] { return df::constant(graph, 2.0f) * 1.0f; });
  const auto master = master_of(cluster);
  df::Session session(graph, {.target = master});
  CHECK(session.run(x).scalar() == 2);
  cluster.stop("worker", 0);
  const df::Status lost = status_of([&] { session.run(x); });
  CHECK(lost.code() == df::Code::unavailable);
  CHECK(mentions(lost, "/job:worker/replica:0/task:0"));
  cluster.start("worker", 0);
  df::Status error;
  do {
    error = status_of([&] { session.run(x); });
  } while (error.code() == df::Code::unavailable);
  CHECK(error.code() == df::Code::aborted);
  CHECK(mentions(error, "started anew"));
  CHECK(df::Session(graph, {.target = master}).run(x).scalar() == 2);
}

TEST_CASE("a reset leaves variables without values, and sessions as they are") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  df::Graph graph;
  std::vector<df::Variable<float>> variables;
  for (int i = 0; i < 2; ++i) {
    const auto on = graph.device("/job:ps/task:" + std::to_string(i));
    variables.emplace_back(graph, df::Tensor<float>(1.0f), df::VariableOptions{.name = "w" + std::to_string(i)});
  }
  const auto init = df::initialize_variables(graph);
  const auto master = master_of(cluster);
  CHECK(master->devices().size() == 3);
  df::Session remote(graph, {.target = master}), local(graph, {.target = cluster.server("worker", 0).target()});
  const auto has_value = [&](df::Session& session, std::size_t i) {
    const df::Code code = code_of([&] { session.run(variables[i].read()); });
    CHECK((code == df::Code::ok || code == df::Code::failed_precondition));
    return code == df::Code::ok;
  };
  const auto check = [&](bool first, bool second) {
    for (df::Session* session : {&remote, &local}) {
      CHECK(has_value(*session, 0) == first);
      CHECK(has_value(*session, 1) == second);
    }
  };
  remote.run(init);
  check(true, true);
  master->reset({"another container"});
  check(true, true);
  master->reset({""});
  check(false, false);
  local.run(init);
  check(true, true);
  df::net::reset(cluster.spec(), {}, {"/job:ps/task:1"}, cluster.options());
  check(true, false);
  df::net::reset(cluster.spec(), {}, {}, cluster.options());
  check(false, false);
  remote.run(init);
  cluster.stop("ps", 1);
  cluster.options().startup_timeout = std::chrono::milliseconds(100);
  const df::Status status = status_of([&] { df::net::reset(cluster.spec(), {}, {}, cluster.options()); });
  CHECK(status.code() == df::Code::unavailable);
  CHECK(mentions(status, "1 of 3 tasks are missing, and were not reset: /job:ps/replica:0/task:1"));
  df::Session first(graph,
                    {.target = master_of(cluster, "/job:worker/task:0", {"/job:ps/task:0"}), .soft_placement = true});
  CHECK_FALSE(has_value(first, 0));  // each task that was reached was reset
}

TEST_CASE("who waits in a queue that is reset is told, and others find a new one") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  const auto on = graph.device("/job:ps/task:0");
  df::FifoQueue<float> queue(graph, {.capacity = 4, .shapes = {{}}});
  auto put = queue.enqueue(df::constant(graph, 7.0f));
  auto taken = queue.dequeue();
  const auto master = master_of(cluster);
  df::Session session(graph, {.target = master});
  std::promise<df::Status> ended;
  session.run_async({}, {}, taken,
                    [&](const df::Status& status, const df::Tensor<float>&) { ended.set_value(status); });
  auto future = ended.get_future();
  while (future.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) master->reset();
  const df::Status status = future.get();
  CHECK(status.code() == df::Code::aborted);
  CHECK(mentions(status, "was reset"));
  CHECK(status.task() == "/job:ps/replica:0/task:0");
  session.run(put);
  CHECK(session.run(taken).scalar() == 7);
  CHECK(code_of([&] { master->reset({"_files"}); }) == df::Code::invalid_argument);
}

TEST_CASE("steps that run while their variables are reset end with an error or with what they hold") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  const auto on = graph.device("/job:ps/task:0");
  df::Variable<float> w(graph, df::Tensor<float>::full({64}, 1.0f), {.name = "w"});
  const auto init = df::initialize_variables(graph);
  const auto add = w.assign_add(df::constant(graph, df::Tensor<float>::full({64}, 1.0f)));
  const auto read = w.read();
  const auto master = master_of(cluster);
  std::atomic<bool> is_over{false};
  std::atomic<int> num_strange{0}, num_steps{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      df::Session session(graph, {.target = master});
      while (!is_over) {
        const df::Code code = code_of([&] {
          const auto value = session.run(read, add);
          if (value(0) != value(63)) ++num_strange;  // half of one
        });
        if (code != df::Code::ok && code != df::Code::failed_precondition) ++num_strange;
        ++num_steps;
      }
    });
  }
  df::Session session(graph, {.target = master});
  for (int i = 0; i < 30 || num_steps < 30; ++i) {
    session.run(init);
    master->reset();
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(num_strange == 0);
  CHECK(code_of([&] { session.run(read); }) == df::Code::failed_precondition);
}

TEST_CASE("a remote master is reached by TCP, with a secret") {
  df::net::ClusterSpec spec;
  spec.add_task("ps", 0, "127.0.0.1:0");
  spec.set_task("ps", 0);
  spec.set_secret("the secret of the test");
  df::net::ServerOptions options;
  options.num_threads = 1;
  options.startup_timeout = std::chrono::seconds(20);
  options.log = [](std::string_view) {};
  df::net::Server server(spec, options);
  const auto run = [&](const std::string& secret) {
    df::net::ClusterSpec cluster;
    cluster.add_task("ps", 0, server.address());
    cluster.set_secret(secret);
    df::Graph graph;
    auto x = df::placeholder<float>(graph, {df::dynamic});
    auto y = x * 2.0f;
    df::Session session(graph, {.target = df::net::remote_master(cluster, "/job:ps/task:0", {}, options)});
    return session.run({{x, df::Tensor<float>::full({3'000'000}, 4.0f)}}, y).span().back();
  };
  CHECK(run("the secret of the test") == 8);
  CHECK_THROWS_WITH(run("another secret, as long"), Catch::Contains("secret"));
}

TEST_CASE("branches and loops run at a remote master, and in the tasks it drives") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto y = placed_on(graph, "/job:worker/task:0", [&] {
    return df::while_loop([](auto v) { return v < 20.0f; },
                          [&](auto v) {
                            return df::cond(
                                v < 4.0f, [&] { return v + x; }, [&] { return v * 3.0f; });
                          },
                          x);
  });
  auto gx = df::gradients(y, x);
  df::Session session(graph, {.target = master_of(cluster)});
  const df::Tensor<float> two(2.0f);  // 2, 4, 12, 36: 18 x
  for (int run = 0; run < 3; ++run) CHECK(session.run({{x, two}}, y).scalar() == 36);
  CHECK(session.run({{x, two}}, gx).scalar() == 18);
  auto later = placed_on(graph, "/job:worker/task:0", [&] {
    return df::cond(
        y > 30.0f, [&] { return y - x; }, [&] { return x; });
  });
  CHECK(session.run({{x, two}}, later).scalar() == 34);  // the graph has grown
  auto elsewhere = placed_on(graph, "/job:ps/task:0", [&] {
    return df::cond(
        x > 0.0f, [&] { return x * 2.0f; }, [&] { return x; });
  });
  CHECK(session.run({{x, two}}, elsewhere).scalar() == 4);
  CHECK(session.run({{x, two}}, y).scalar() == 36);
}
