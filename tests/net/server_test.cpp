#include <dflow/net/server.hpp>

#include <dflow/base/clock.hpp>
#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/protocol/frame.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include "catch.hpp"
#include "cluster_harness.hpp"
#include "transport/transport_contract.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

using namespace dflow;
using namespace dflow::net;

namespace {

/// A pool that keeps each thread that has waited in it until `lets_go`.
class KeepingPool final : public ThreadPool {
 public:
  int num_threads() const noexcept override { return threads_.num_threads(); }
  void schedule(Task task) override { threads_.schedule(std::move(task)); }
  void wait(PoolEvent& event) override {
    is_waited_in = true;
    is_waited_in.notify_all();
    threads_.wait(event);
    lets_go.wait(false);
  }
  bool current_thread_is_worker() const noexcept override { return threads_.current_thread_is_worker(); }

  std::atomic<bool> is_waited_in{false}, lets_go{false};

 private:
  ElasticPool threads_;
};

}  // namespace

TEST_CASE("a server may be destroyed when it has stopped, also while a thread is on its way out of join", "[net]") {
  const auto pool = std::make_shared<KeepingPool>();
  auto clock = std::make_shared<VirtualClock>();
  const std::weak_ptr<Clock> of_server = clock;
  auto server = std::make_unique<Server>(ClusterSpec::local(), ServerOptions{.pool = pool, .clock = std::move(clock)});
  std::thread joins([&of = *server] { of.join(); });
  pool->is_waited_in.wait(false);
  server = nullptr;
  CHECK_FALSE(of_server.expired());  // `join` uses it
  pool->lets_go = true;
  pool->lets_go.notify_all();
  joins.join();
  CHECK(of_server.expired());
}

TEST_CASE("a server that is stopped by what its stop calls does not wait for itself", "[net]") {
  const auto transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(2));
  std::atomic<Server*> stopped{nullptr};
  std::atomic<int> num_lines{0};
  ServerOptions options;
  options.transport = transport;
  options.num_threads = 1;
  options.log = [&](std::string_view) {
    ++num_lines;
    num_lines.notify_all();
    Server* const server = stopped.load();
    if (server == nullptr) return;
    server->stop();
    server->join();
  };
  ClusterSpec spec;
  spec.add_task("ps", 0, "ps0");
  spec.set_task("ps", 0);
  Server server(spec, options);
  stopped = &server;
  // When the server stops, it logs a line for each connection that has sent nothing yet.
  std::unique_ptr<Stream> stream;
  REQUIRE(test::connect(*transport, "ps0", stream).ok());
  CHECK(test::read(*stream, FrameHeader::size).size() == FrameHeader::size);
  server.stop();
  server.stop();
  CHECK(server.join() == 0);
  num_lines.wait(0);  // a thread of the transport may be about to log it
  CHECK(num_lines == 1);
  stopped = nullptr;
}

TEST_CASE("a task that is told to end waits for one session of a client, and for none it does not wait", "[net]") {
  for (const bool has_master : {false, true}) {
    CAPTURE(has_master);
    dflow::testing::MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
    Graph graph;
    Output<float> y;
    {
      const auto on = graph.device("/job:ps/task:0");
      y = Variable<float>(graph, 1.0f) + 1.0f;
    }
    // The worker lends a session either its devices or its master.
    const std::string ending = has_master ? "worker" : "ps";
    SessionOptions options;
    options.target = has_master ? remote_master(cluster.spec(), "/job:worker/task:0", {}, cluster.options())
                                : cluster.server("worker", 0).target();
    std::optional<Session> session(std::in_place, graph, options);
    session->run(initialize_variables(graph));
    CHECK(session->run(y).scalar() == 2);
    std::stop_source told;
    told.request_stop();
    auto ended = std::async(std::launch::async, [&] {
      return cluster.server(ending, 0).join({.grace = std::chrono::hours(1), .stop = told.get_token()});
    });
    const auto waits = [&] { return cluster.log().has("it waits for its clients' sessions to end"); };
    while (!waits() && ended.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    }
    CHECK(waits());
    session.reset();
    CHECK(ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    cluster.server(ending, 0).stop();  // the end of a wait that a mistake would make an hour long
    CHECK(ended.get() == 0);
  }
}

TEST_CASE("a task that ends when nobody uses it has seen a session that came and went between two looks", "[net]") {
  for (const bool has_master : {false, true}) {
    CAPTURE(has_master);
    dflow::testing::MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
    const std::string ending = has_master ? "worker" : "ps";
    const auto began = std::chrono::steady_clock::now();
    auto ended = std::async(std::launch::async,
                            [&] { return cluster.server(ending, 0).join({.idle = std::chrono::milliseconds(200)}); });
    // Nobody has had a session yet.
    CHECK(ended.wait_for(std::chrono::milliseconds(500)) == std::future_status::timeout);
    CHECK(std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(500));
    {
      Graph graph;
      Output<float> y;
      {
        const auto on = graph.device("/job:ps/task:0");
        y = Variable<float>(graph, 1.0f) + 1.0f;
      }
      SessionOptions options;
      options.target = has_master ? remote_master(cluster.spec(), "/job:worker/task:0", {}, cluster.options())
                                  : cluster.server("worker", 0).target();
      Session session(graph, options);
      session.run(initialize_variables(graph));
      CHECK(session.run(y).scalar() == 2);
    }
    CHECK(ended.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    cluster.server(ending, 0).stop();
    CHECK(ended.get() == 0);
  }
}
