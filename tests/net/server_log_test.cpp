// The log of a task when its reader has stopped or gone, and when strangers write it.
#include <dflow/net/server.hpp>

#include <dflow/dflow.hpp>
#include <dflow/net/transport/memory_transport.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include "catch.hpp"
#include "cluster_harness.hpp"
#include "protocol/connection_harness.hpp"
#include "support/standard_error.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;
using namespace std::chrono_literals;
namespace test = dflow::net::test;

TEST_CASE("a task serves on though the reader of standard error has stopped, or has gone", "[net]") {
  const bool has_gone = GENERATE(false, true);
  const dflow::testing::BrokenPipeCount signals;
  dflow::testing::StandardErrorPipe error;
  has_gone ? error.take_reader_away() : error.fill();
  net::ClusterSpec spec;
  spec.add_task("ps", 0, "127.0.0.1:0");
  spec.set_task("ps", 0);
  spec.set_secret("the secret of the test");
  net::Server server(spec, {.num_threads = 1});
  net::AsioTransport strangers;
  for (int i = 0; i < 50; ++i) {
    std::unique_ptr<net::Stream> stream;
    REQUIRE(test::connect(strangers, server.address(), stream).ok());
    CHECK(test::write(*stream, {std::string(64, 'x')}).ok());
    Status status;
    test::read(*stream, 1 << 20, &status);
    CHECK(status.code() == Code::unavailable);  // the server has closed it
  }
  net::ClusterSpec cluster;
  cluster.add_task("ps", 0, server.address());
  cluster.set_secret("the secret of the test");
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto doubled = x * 2.0f;
  Session session(graph, {.target = net::connect(cluster, {.startup_timeout = 30s})});
  CHECK(session.run({{x, Tensor<float>(4.0f)}}, doubled).scalar() == 8);
  error.take_reader_away();
  CHECK(signals.count() == 0);
}

TEST_CASE("a log that blocks holds up no task, and is called by one thread that is not the transport's", "[net]") {
  std::promise<void> begun, may_go_on;
  std::atomic<int> num_lines{0};
  net::ServerOptions options;
  options.transport = std::make_shared<net::MemoryTransport>(std::make_shared<WorkStealingPool>(1));
  options.num_threads = 1;
  options.log = [&](std::string_view) {
    if (++num_lines > 1) return;
    begun.set_value();
    may_go_on.get_future().wait();
  };
  net::ClusterSpec spec;
  spec.add_task("ps", 0, "ps0");
  spec.set_task("ps", 0);
  net::Server server(spec, options);
  std::unique_ptr<net::Stream> stranger;
  REQUIRE(test::connect(*options.transport, "ps0", stranger).ok());
  CHECK(test::write(*stranger, {std::string(64, 'x')}).ok());
  begun.get_future().wait();
  net::ClusterSpec cluster;
  cluster.add_task("ps", 0, "ps0");
  net::ServerOptions of_client = options;
  of_client.log = [](std::string_view) {};
  of_client.startup_timeout = 30s;
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto doubled = x * 2.0f;
  const auto outcome = status_of([&] {
    Session session(graph, {.target = net::connect(cluster, of_client)});
    CHECK(session.run({{x, Tensor<float>(4.0f)}}, doubled).scalar() == 8);
  });
  INFO(outcome.to_string());
  CHECK(outcome.ok());
  may_go_on.set_value();
}

TEST_CASE("strangers write the log up to a limit, in short lines that say why", "[net]") {
  dflow::testing::ServerLog log;
  const auto transport = std::make_shared<net::MemoryTransport>(std::make_shared<WorkStealingPool>(2));
  {
    net::ServerOptions options;
    options.transport = transport;
    options.num_threads = 1;
    options.clock = std::make_shared<VirtualClock>();
    options.log = [&](std::string_view line) {
      const std::lock_guard lock(log.mutex);
      log.lines.emplace_back(line);
    };
    net::ClusterSpec spec;
    spec.add_task("ps", 0, "ps0");
    spec.set_task("ps", 0);
    const net::Server server(spec, options);
    for (int i = 0; i < 100; ++i) {
      std::unique_ptr<net::Stream> stream;
      REQUIRE(test::connect(*transport, "ps0", stream).ok());
      net::Handshake::Options stranger;
      stranger.self.cluster = std::string(1000, 'c');
      stranger.self.task = std::string(1000, 't');
      stranger.random = test::random_number;
      const net::Handshake handshake(stranger);
      CHECK(test::write(*stream, {test::frame_bytes(net::FrameType::hello, 0, handshake.hello())}).ok());
      Status status;
      test::read(*stream, 1 << 20, &status);
      CHECK(status.code() == Code::unavailable);
    }
  }
  CHECK(log.lines.size() == 21);  // the last one says how many were left out
  CHECK(log.has("80 lines that others have caused were left out"));
  for (std::size_t i = 0; i + 1 < log.lines.size(); ++i) {
    CHECK(log.lines[i].size() < 600);
    CHECK(contains(log.lines[i], "no connection with a client of ps0: FAILED_PRECONDITION: 'ttt"));
    CHECK(contains(log.lines[i], "' belongs to cluster 'ccc"));
    CHECK(contains(log.lines[i], "', and this is ''"));
  }
}

TEST_CASE("a step that prints to standard error that nobody reads holds up no other step", "[net]") {
  dflow::testing::StandardErrorPipe error;
  error.fill();
  net::ServerOptions options;
  options.transport = std::make_shared<net::MemoryTransport>(std::make_shared<WorkStealingPool>(1));
  dflow::testing::MemoryCluster cluster({{"ps", 1}, {"worker", 1}}, options);
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto [printed, doubled] = [&] {
    const auto on = graph.device("/job:ps/task:0");
    return std::pair(print(x, {x}, "printed: "), x * 2.0f);
  }();
  Session session(graph, {.target = cluster.server("worker", 0).target()});
  std::promise<Status> ended;
  session.run_async({{x, 1.0f}}, printed,
                    [&](Status status, const Tensor<float>&) { ended.set_value(std::move(status)); });
  for (int i = 0; i < 3; ++i) {
    const Status other = status_of([&] {
      CHECK(session.run({.deadline = 30s}, {{x, Tensor<float>(2.0f)}}, doubled).scalar() == 4);
    });
    INFO(other.to_string());
    CHECK(other.ok());
  }
  CHECK(contains(error.read_until("printed: [1]\n"), "printed: [1]\n"));
  CHECK(ended.get_future().get().ok());
}
