#include <dflow/net/inspect/metrics.hpp>

#include <dflow/base/clock.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/transport/memory_transport.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../loopback_spec.hpp"
#include "support/errors.hpp"

namespace df = dflow;

namespace {

/// An HTTP client that sends a given text and reads to the end.
class RawClient {
 public:
  RawClient(df::net::Transport& transport, const std::string& address) {
    std::promise<df::Status> connected;
    transport.connect(address, df::Clock::never, stream_, [&](df::Status s) { connected.set_value(std::move(s)); });
    df::throw_if_error(connected.get_future().get());
  }
  bool say(std::string_view text) {
    std::promise<bool> said;
    stream_->write({std::as_bytes(std::span(text.data(), text.size()))},
                   [&](const df::Status& s) { said.set_value(s.ok()); });
    return said.get_future().get();
  }
  std::string read_all() {
    std::string all;
    std::array<std::byte, 512> room;
    for (;;) {
      std::promise<bool> read;
      std::size_t count = 0;
      stream_->read_some(room, count, [&](const df::Status& s) { read.set_value(s.ok()); });
      if (!read.get_future().get()) return all;
      all.append(reinterpret_cast<const char*>(room.data()), count);
    }
  }

 private:
  std::unique_ptr<df::net::Stream> stream_;
};

std::string ask(df::net::Transport& transport, const std::string& address, std::string_view request) {
  RawClient client(transport, address);
  static_cast<void>(client.say(request));
  return client.read_all();
}

struct ServedText {
  std::shared_ptr<df::VirtualClock> clock = std::make_shared<df::VirtualClock>();
  df::net::MemoryTransport transport{std::make_shared<df::WorkStealingPool>(2, df::ThreadPoolOptions{.name = "io"})};
  std::shared_ptr<df::net::MetricsServer> server;

  ServedText() {
    df::net::MetricsServer::Options options;
    options.transport = std::shared_ptr<df::net::Transport>(&transport, [](df::net::Transport*) {});
    options.clock = clock;
    options.text = [] { return std::string("the_text 1\n"); };
    options.log = [](std::string_view) {};
    options.max_connections = 4;
    server = std::make_shared<df::net::MetricsServer>(std::move(options));
    server->listen("metrics");
  }
  ~ServedText() { server->close(); }
  std::string asked(std::string_view request) { return ask(transport, "metrics", request); }
};

std::uint64_t value_of(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find("\n" + name);
  REQUIRE(begin != std::string::npos);
  return std::stoull(text.substr(text.find("} ", begin) + 2));
}

}  // namespace

TEST_CASE("metrics are answered to GET, and nothing else is", "[net][metrics]") {
  ServedText served;
  for (int i = 0; i < 3; ++i) {
    const std::string answer = served.asked("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK_THAT(answer, Catch::StartsWith("HTTP/1.0 200 OK\r\n") && Catch::EndsWith("\r\n\r\nthe_text 1\n") &&
                           Catch::Contains("version=0.0.4") && Catch::Contains("Content-Length: 11\r\n"));
  }
  CHECK_THAT(served.asked("GET /?x=1 HTTP/1.0\n\n"), Catch::StartsWith("HTTP/1.0 200"));
  CHECK_THAT(served.asked("GET /etc/passwd HTTP/1.0\r\n\r\n"), Catch::StartsWith("HTTP/1.0 404"));
  CHECK_THAT(served.asked("POST /metrics HTTP/1.0\r\n\r\n"), Catch::StartsWith("HTTP/1.0 405"));
  CHECK_THAT(served.asked("nonsense\r\n\r\n"), Catch::StartsWith("HTTP/1.0 400"));
  CHECK_THAT(served.asked(std::string(5000, 'x')), Catch::StartsWith("HTTP/1.0 431"));
}

TEST_CASE("a request may come in pieces, and requests that do not come keep nobody away", "[net][metrics]") {
  ServedText served;
  {
    RawClient slow(served.transport, "metrics");
    for (const char c : std::string("GET /metrics HTTP/1.0\r\n\r")) REQUIRE(slow.say({&c, 1}));
    REQUIRE(slow.say("\n"));
    CHECK_THAT(slow.read_all(), Catch::EndsWith("the_text 1\n"));
  }
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 4; ++i) {
    silent.push_back(std::make_unique<RawClient>(served.transport, "metrics"));
    REQUIRE(silent.back()->say("GET /metrics"));
  }
  // All allowed connections are open, and each further one takes the place of the oldest.
  for (int i = 0; i < 3; ++i) CHECK_THAT(served.asked("GET / HTTP/1.0\r\n\r\n"), Catch::StartsWith("HTTP/1.0 200"));
  served.clock->advance(std::chrono::minutes(1));
  for (const auto& client : silent) CHECK(client->read_all().empty());
  CHECK_THAT(served.asked("GET / HTTP/1.0\r\n\r\n"), Catch::StartsWith("HTTP/1.0 200"));
}

TEST_CASE("whatever is sent, the metrics are still answered", "[net][metrics]") {
  ServedText served;
  std::mt19937 random(7);
  const std::string good = "GET /metrics HTTP/1.0\r\nA: b\r\n\r\n";
  for (int i = 0; i < 500; ++i) {
    std::string bad = good.substr(0, random() % (good.size() + 1));
    const auto flips = random() % 4;
    for (unsigned k = 0; k < flips && !bad.empty(); ++k) bad[random() % bad.size()] = static_cast<char>(random());
    if (random() % 8 == 0) bad.append(random() % 9000, static_cast<char>(random()));
    RawClient client(served.transport, "metrics");
    static_cast<void>(client.say(bad));
    if (random() % 2 == 0 && bad.find("\r\n\r\n") != std::string::npos) static_cast<void>(client.read_all());
  }
  std::string answer;
  while (answer.empty()) answer = served.asked(good);  // closed connections may still hold places
  CHECK_THAT(answer, Catch::EndsWith("the_text 1\n"));
}

TEST_CASE("a task serves what it counts, until it stops", "[net][metrics]") {
  const auto transport = std::make_shared<df::net::MemoryTransport>(
      std::make_shared<df::WorkStealingPool>(2, df::ThreadPoolOptions{.name = "io"}));
  df::net::ClusterSpec spec;
  spec.add_task("ps", 0, "ps0");
  spec.add_task("worker", 0, "worker0");
  const auto start = [&](const std::string& job) {
    df::net::ClusterSpec own = spec;
    own.set_task(job, 0);
    df::net::ServerOptions options;
    options.num_threads = 2;
    options.transport = transport;
    options.log = [](std::string_view) {};
    options.metrics_address = job + " metrics";
    return std::make_unique<df::net::Server>(own, std::move(options));
  };
  auto ps = start("ps");
  const auto worker = start("worker");
  CHECK(ps->metrics_address() == "ps metrics");
  const auto scrape = [&](const std::string& job = "ps") {
    return ask(*transport, job + " metrics", "GET /metrics HTTP/1.0\r\n\r\n");
  };
  const std::string at_ps = "{task=\"/job:ps/replica:0/task:0\",code=\"";
  const std::string at_worker = "{task=\"/job:worker/replica:0/task:0\",code=\"";
  const std::string failed{df::code_name(df::Code::failed_precondition)};
  CHECK_THAT(scrape(), Catch::Contains("dflow_steps_total" + at_ps + "OK\"} 0\n") &&
                           Catch::Contains("dflow_step_parts_total" + at_ps + "OK\"} 0\n"));

  df::Graph graph;
  const auto on = graph.device("/job:ps/task:0");
  const auto x = df::placeholder<float>(graph, {});
  const auto y = x * 2.0f;
  df::Variable<float> never_set(graph, df::Tensor<float>(1.0f), {.name = "never_set"});
  df::Session session(graph, {.target = worker->target()});
  for (int i = 0; i < 3; ++i) CHECK(session.run({{x, 1.0f}}, y).scalar() == 2);
  CHECK_THROWS_AS(session.run(never_set), df::Error);
  const std::string text = scrape();
  CHECK(value_of(text, "dflow_step_parts_total" + at_ps + "OK\"") == 3);
  CHECK(value_of(text, "dflow_step_parts_total" + at_ps + failed + "\"") == 1);
  CHECK(value_of(text, "dflow_steps_total" + at_ps + "OK\"") == 0);
  CHECK_THAT(text, !Catch::Contains("dflow_steps_total" + at_ps + failed));
  CHECK(value_of(text, "dflow_sessions") == 1);
  CHECK(value_of(text, "dflow_connections") >= 1);
  CHECK(value_of(text, "dflow_received_bytes_total") > 100);
  CHECK(value_of(text, "dflow_sent_bytes_total") > 100);
  CHECK(value_of(text, "dflow_pending_receives") == 0);
  CHECK(value_of(text, "dflow_resident_memory_bytes") > 1'000'000);
  // Steps count where their session is, however they are run.
  CHECK(value_of(scrape("worker"), "dflow_steps_total" + at_worker + "OK\"") == 3);
  CHECK(value_of(scrape("worker"), "dflow_steps_total" + at_worker + failed + "\"") == 1);
  CHECK(value_of(scrape("worker"), "dflow_step_parts_total" + at_worker + "OK\"") == 0);
  const auto local = df::constant(graph, 2.0f) * 3.0f;
  const auto step = session.prepare(df::feeds(x), df::fetches(y));
  CHECK(step(2.0f).scalar() == 4);
  std::promise<float> value;
  session.run_async(local, [&](const df::Status&, const df::Tensor<float>& of) { value.set_value(of.scalar()); });
  CHECK(value.get_future().get() == 6);
  {
    df::PartialRun run = session.partial_run(df::feeds(x), df::fetches(y));
    run.feed(x, 3.0f);
    CHECK(run.fetch(y).scalar() == 6);
  }
  CHECK(value_of(scrape("worker"), "dflow_steps_total" + at_worker + "OK\"") == 6);
  CHECK(value_of(scrape("worker"), "dflow_steps_total" + at_worker + failed + "\"") == 1);
  {
    df::net::ServerOptions options;
    options.transport = transport;
    options.log = [](std::string_view) {};
    df::Session kept(graph, {.target = df::net::remote_master(spec, "/job:worker/task:0", {}, std::move(options))});
    CHECK(kept.run({{x, 1.0f}}, y).scalar() == 2);
    // The session is seen where it is kept, and its steps too.
    CHECK(value_of(scrape("worker"), "dflow_sessions") == 1);
    CHECK(value_of(scrape("worker"), "dflow_running_steps") == 0);
    df::PartialRun run = kept.partial_run(df::feeds(x), df::fetches(y));
    CHECK(value_of(scrape("worker"), "dflow_running_steps") == 1);
  }
  CHECK(value_of(scrape("worker"), "dflow_steps_total" + at_worker + "OK\"") == 7);
  while (value_of(scrape("worker"), "dflow_sessions") != 0) std::this_thread::yield();
  ps = nullptr;
  CHECK_THROWS_AS(scrape(), df::Error);
}

TEST_CASE("metrics are served by TCP on a port of their own", "[net][metrics]") {
  df::net::ClusterSpec spec = df::testing::loopback_spec();
  spec.set_task("ps", 0);
  df::net::Server server(spec, {.num_threads = 1, .metrics_address = "0", .log = [](std::string_view) {}});
  CHECK(server.metrics_address() != server.address());
  df::net::AsioTransport transport;
  for (int i = 0; i < 3; ++i) {
    CHECK_THAT(ask(transport, server.metrics_address(), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
               Catch::StartsWith("HTTP/1.0 200 OK\r\n") && Catch::Contains("dflow_resident_memory_bytes{task="));
  }
  RawClient silent(transport, server.metrics_address());  // does not keep the server from its end
  server.stop();
  CHECK(silent.read_all().empty());
}

TEST_CASE("a port of metrics that is taken is said to be the metrics'", "[net][metrics]") {
  df::net::ClusterSpec spec = df::testing::loopback_spec();
  spec.set_task("ps", 0);
  const df::net::Server first(spec, {.num_threads = 1, .metrics_address = "0", .log = [](std::string_view) {}});
  df::net::ClusterSpec other = df::testing::loopback_spec();
  other.set_task("ps", 0);
  const df::Status status = status_of([&] {
    return std::make_unique<df::net::Server>(
        other, df::net::ServerOptions{
                   .num_threads = 1, .metrics_address = first.metrics_address(), .log = [](std::string_view) {}});
  });
  CHECK(status.code() == df::Code::already_exists);
  CHECK(status.message().find("the task's metrics: cannot listen at '" + first.metrics_address() + "'") == 0);
}

TEST_CASE("a port alone is loopback's", "[net][metrics]") {
  CHECK(df::net::metrics_address("9100") == "127.0.0.1:9100");
  CHECK(df::net::metrics_address(":0") == "127.0.0.1:0");
  CHECK(df::net::metrics_address("0.0.0.0:9100") == "0.0.0.0:9100");
  CHECK(df::net::metrics_address("metrics") == "metrics");
}
