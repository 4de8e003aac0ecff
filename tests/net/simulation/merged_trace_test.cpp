// The trace of a step of many tasks that have wrong clocks.
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/simulation/simulated_network.hpp>
#include <dflow/trace/chrome_trace.hpp>

#include "catch.hpp"
#include "support/sanitized.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(DFLOW_TEST_HAS_JSON)
#include <nlohmann/json.hpp>
#endif

namespace df = dflow;
using namespace std::chrono_literals;

namespace {

/// The faults of a machine's clocks.
struct ClockFault {
  df::Duration ahead = 0s;   ///< of the steady clock
  double rate = 1;           ///< seconds of the steady clock in one second
  double calendar_rate = 1;  ///< negative: the clock runs backwards
};

class WrongClock final : public df::Clock {
 public:
  WrongClock(std::shared_ptr<df::Clock> right, const ClockFault& fault) : right_(std::move(right)), fault_(fault) {}

  time_point now() const override { return time_point(fault_.ahead + scaled(elapsed(), fault_.rate)); }
  wall_time_point wall_now() const override {
    return wall_time_point(df::Duration(1'000'000h) + fault_.ahead + scaled(elapsed(), fault_.calendar_rate));
  }
  df::TimerId schedule_at(time_point time, df::UniqueFunction<void()> callback) override {
    const df::Duration left = std::max(time - now(), df::Duration(0));
    return right_->schedule_at(right_->after(scaled(left, 1 / fault_.rate)), std::move(callback));
  }
  bool cancel(df::TimerId id) override { return right_->cancel(id); }

 private:
  df::Duration elapsed() const { return right_->now().time_since_epoch(); }
  static df::Duration scaled(df::Duration time, double by) {
    return df::Duration(static_cast<df::Duration::rep>(static_cast<double>(time.count()) * by));
  }

  const std::shared_ptr<df::Clock> right_;
  const ClockFault fault_;
};

/// A transport that gets its deadlines from a wrong clock.
class TransportByClock final : public df::net::Transport {
 public:
  TransportByClock(std::shared_ptr<df::net::Transport> to, std::shared_ptr<df::Clock> right,
                   std::shared_ptr<df::Clock> wrong)
      : to_(std::move(to)), right_(std::move(right)), wrong_(std::move(wrong)) {}

  std::unique_ptr<df::net::Listener> listen(const std::string& address) override { return to_->listen(address); }
  void connect(const std::string& address, df::Clock::time_point deadline, std::unique_ptr<df::net::Stream>& stream,
               df::Completion done) override {
    to_->connect(address, right_->after(deadline - wrong_->now()), stream, std::move(done));
  }

 private:
  const std::shared_ptr<df::net::Transport> to_;
  const std::shared_ptr<df::Clock> right_, wrong_;
};

constexpr df::Duration least_delay = 50us, most_delay = 500us;

/// A number that goes from "worker0" over "ps0" and "ps1" and back.
struct ClusterOfWrongClocks {
  ClusterOfWrongClocks(std::uint64_t seed, const std::map<std::string, ClockFault>& faults)
      : simulation(seed), network(simulation, {.link = {.min_delay = least_delay, .max_delay = most_delay}}) {
    for (int i = 0; i < 2; ++i) spec.add_task("ps", i, "ps" + std::to_string(i));
    spec.add_task("worker", 0, "worker0");
    for (const auto& [name, fault] : faults) start(name, fault);
    x = df::placeholder<float>(graph, {});
    y = x;
    for (int i = 0; i < 2; ++i) {
      const auto on = graph.device("/job:ps/task:" + std::to_string(i));
      y = y * 2.0f;
    }
    const auto on = graph.device("/job:worker");
    y = y + 1.0f;
    df::SessionOptions options;
    options.target = servers.at("worker0")->target();
    options.clock = clocks.at("worker0");
    options.callbacks = processes.at("worker0")->pool();
    options.incarnation = 1;
    session = std::make_unique<df::Session>(graph, options);
  }
  ~ClusterOfWrongClocks() {
    session = nullptr;
    servers.clear();
    simulation.run_for(1s);
  }

  void start(const std::string& name, const ClockFault& fault) {
    processes[name] = simulation.start(name);
    clocks[name] = std::make_shared<WrongClock>(processes[name]->clock(), fault);
    df::net::ServerOptions options;
    options.pool = processes[name]->pool();
    options.clock = clocks[name];
    options.transport =
        std::make_shared<TransportByClock>(network.transport(processes[name]), processes[name]->clock(), clocks[name]);
    options.random = options.draw_seed = [this] { return simulation.random(); };
    options.log = [](std::string_view) {};
    df::net::ClusterSpec of_task = spec;
    of_task.set_task(name.substr(0, name.size() - 1), name.back() - '0');
    servers[name] = std::make_unique<df::net::Server>(of_task, options);
  }

  df::StepStats run(bool trace) {
    df::RunMetadata metadata;
    const df::Tensor<float> got = session->run({.trace = trace}, &metadata, {{x, df::Tensor<float>(1.0f)}}, y);
    CHECK(got.scalar() == 5);
    return std::move(metadata.stats);
  }

  df::net::Simulation simulation;
  df::net::SimulatedNetwork network;
  df::net::ClusterSpec spec;
  std::map<std::string, std::shared_ptr<df::net::SimulatedProcess>> processes;
  std::map<std::string, std::shared_ptr<df::Clock>> clocks;
  std::map<std::string, std::unique_ptr<df::net::Server>> servers;
  df::Graph graph;
  df::Output<float> x, y;
  std::unique_ptr<df::Session> session;
};

const df::NodeStats& only_node(const df::StepStats& stats, std::string_view op, std::string_view device) {
  const df::NodeStats* found = nullptr;
  for (const df::NodeStats& node : stats.nodes) {
    if (node.op != op || node.device.find(device) == std::string::npos) continue;
    CHECK(found == nullptr);
    found = &node;
  }
  REQUIRE(found != nullptr);
  return *found;
}

/// Checks that each task made its tensors before the next task used them, within the uncertainty of round trips.
void check_order(const df::StepStats& stats) {
  constexpr std::int64_t round_trip_ns = df::Duration(2 * most_delay + 100us).count();
  for (const df::NodeStats& node : stats.nodes) {
    INFO(node.device << ' ' << node.node << ' ' << node.start_ns << ' ' << node.end_ns);
    CHECK(node.start_ns >= 0);
    CHECK(node.end_ns <= stats.total_ns);
  }
  const std::pair<std::string, std::string> ways[] = {{"ps/replica:0/task:0", "ps/replica:0/task:1"},
                                                      {"ps/replica:0/task:1", "worker/replica:0/task:0"}};
  for (const auto& [from, to] : ways) {
    const df::NodeStats &sent = only_node(stats, "_Send", from), &received = only_node(stats, "_Recv", to);
    INFO("sent at " << sent.start_ns << ", received at " << received.end_ns);
    CHECK(received.end_ns >= sent.start_ns - round_trip_ns);
    CHECK(received.end_ns <= sent.start_ns + 2 * round_trip_ns);
  }
}

using Faults = std::map<std::string, ClockFault>;
const std::vector<Faults>& wrong_clocks() {
  static const std::vector<Faults> all{
      {{"worker0", {}}, {"ps0", {}}, {"ps1", {}}},
      {{"worker0", {}}, {"ps0", {17min}}, {"ps1", {-40min}}},
      {{"worker0", {5h}}, {"ps0", {0s, 1 + 2e-4}}, {"ps1", {3min, 1 - 3e-4}}},
      {{"worker0", {-90s, 1 - 1e-4, -1}}, {"ps0", {1h, 1 + 1e-4, -20}}, {"ps1", {0s, 1, -0.5}}},
  };
  return all;
}

}  // namespace

TEST_CASE("in a merged trace nothing is received before it was sent, however wrong the clocks are") {
  for (const Faults& faults : wrong_clocks()) {
    for (std::uint64_t seed = 1; seed <= (df::testing::is_sanitized ? 3 : 10); ++seed) {
      INFO("seed " << seed << ", clocks " << &faults - wrong_clocks().data());
      ClusterOfWrongClocks cluster(seed, faults);
      check_order(cluster.run(true));
      for (int step = 0; step < 10; ++step) {
        cluster.simulation.run_for(std::chrono::seconds(step * step));
        static_cast<void>(cluster.run(false));
      }
      check_order(cluster.run(true));
      cluster.simulation.run_for(1h);
      check_order(cluster.run(true));
    }
  }
}

TEST_CASE("times of other tasks are exact where both ways take the same") {
  ClusterOfWrongClocks cluster(1, {{"worker0", {}}, {"ps0", {1h}}, {"ps1", {-1h}}});
  cluster.network.set_link({.min_delay = 1ms, .max_delay = 1ms, .bytes_per_second = 1e12});
  static_cast<void>(cluster.run(false));
  static_cast<void>(cluster.run(false));
  const df::StepStats stats = cluster.run(true);
  const df::NodeStats& sent = only_node(stats, "_Send", "ps/replica:0/task:0");
  const df::NodeStats& received = only_node(stats, "_Recv", "ps/replica:0/task:1");
  CHECK(received.end_ns - sent.start_ns >= 990'000);
  CHECK(received.end_ns - sent.start_ns <= 1'210'000);  // with two delays of pools
}

#if defined(DFLOW_TEST_HAS_JSON)
TEST_CASE("a merged trace is one Chrome trace with a process for each device, in order") {
  ClusterOfWrongClocks cluster(3, wrong_clocks()[1]);
  const auto json = nlohmann::json::parse(df::chrome_trace(cluster.run(true)));
  std::map<std::string, int> processes;
  std::map<int, double> multiplied;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "M") processes[event["args"]["name"].get<std::string>()] = event["pid"].get<int>();
    if (event["name"] == "Mul") multiplied[event["pid"].get<int>()] = event["ts"].get<double>();
  }
  CHECK(processes.size() == 3);
  const auto at = [&](int task) {
    return multiplied.at(processes.at("/job:ps/replica:0/task:" + std::to_string(task) + "/device:CPU:0"));
  };
  CHECK(at(1) > at(0));
  CHECK(at(1) < json["otherData"]["total_us"].get<double>());
}
#endif
