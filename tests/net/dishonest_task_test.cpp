// A parameter server that answers runs with what is not its to send.
#include <dflow/dflow.hpp>
#include <dflow/net/messages.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include "catch.hpp"
#include "errors.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;
namespace net = dflow::net;

namespace {

const std::string dishonest_task = "/job:ps/replica:0/task:0";
const std::string honest_task = "/job:worker/replica:0/task:0";
constexpr std::uint64_t dishonest_incarnation = 77;

/// Registers everything, and runs nothing.
class DishonestTask : public net::Connection::Handler {
 public:
  std::function<net::RunShareReply()> answer;

  void on_request(const std::shared_ptr<net::Connection>&, net::Incoming request, net::Responder respond) override {
    const auto method = static_cast<net::Method>(request.method);
    if (method == net::Method::list_devices) {
      net::DeviceList list;
      df::DeviceInfo& device = list.devices.emplace_back();
      device.name = dishonest_task + "/device:CPU:0";
      device.type = "CPU";
      device.incarnation = dishonest_incarnation;
      return respond(net::Outgoing{net::to_body(list), {}});
    }
    if (method == net::Method::run_share) return respond(net::Outgoing{net::to_body(answer()), {}});
    respond(net::Outgoing());
  }
  void on_closed(net::Connection&, const df::Status&) override {}
};

/// Listens where its address says, as long as it lives.
class DishonestListener {
 public:
  DishonestListener(net::Transport& transport, const std::string& address, std::shared_ptr<DishonestTask> task)
      : state_(std::make_shared<State>()) {
    state_->listener = transport.listen(address);
    state_->task = std::move(task);
    accept(state_);
  }
  ~DishonestListener() {
    state_->listener->close();
    std::vector<std::shared_ptr<net::Connection>> open;
    {
      const std::lock_guard lock(state_->mutex);
      open.swap(state_->connections);
    }
    for (const auto& connection : open) connection->close(df::unavailable("the test is over"));
  }

 private:
  struct State {
    std::unique_ptr<net::Listener> listener;
    std::shared_ptr<DishonestTask> task;
    std::unique_ptr<net::Stream> stream;
    std::mutex mutex;
    std::vector<std::shared_ptr<net::Connection>> connections;
  };

  static void accept(const std::shared_ptr<State>& state) {
    state->listener->accept(state->stream, [state](const df::Status& status) {
      if (!status.ok()) return;
      net::ConnectionOptions options;
      options.self = {{}, dishonest_task, dishonest_incarnation, net::ServerOptions().ops.ops().fingerprint()};
      options.clock = std::make_shared<df::RealClock>();
      options.random = df::system_seed;
      auto opening =
          net::Connection::open(std::move(state->stream), net::Role::acceptor, std::move(options), state->task,
                                [](const df::Status&, const std::shared_ptr<net::Connection>&) {});
      {
        const std::lock_guard lock(state->mutex);
        state->connections.push_back(std::move(opening));
      }
      accept(state);
    });
  }

  const std::shared_ptr<State> state_;
};

std::string key_between(const std::string& source, std::uint64_t incarnation, const std::string& destination,
                        const std::string& name) {
  return df::RendezvousKey(source + "/device:CPU:0", incarnation, destination + "/device:CPU:0", name).text();
}

}  // namespace

TEST_CASE("a task that answers with tensors of others, or that nobody has asked for, ends the step", "[net]") {
  net::ServerOptions options;
  options.transport = std::make_shared<net::MemoryTransport>(
      std::make_shared<df::WorkStealingPool>(2, df::ThreadPoolOptions{.name = "io"}));
  options.num_threads = 1;
  options.log = [](std::string_view) {};
  net::ClusterSpec spec;
  spec.add_task("ps", 0, "ps0");
  spec.add_task("worker", 0, "worker0");
  spec.set_task("worker", 0);
  const auto task = std::make_shared<DishonestTask>();
  const DishonestListener listener(*options.transport, "ps0", task);
  net::Server worker(spec, options);

  df::Graph graph;
  const auto there = [&] {
    const auto on = graph.device("/job:ps/task:0");
    return df::random_uniform<float>(graph, {});
  }();
  const auto here = [&] {
    const auto on = graph.device("/job:worker/task:0");
    return there * 2.0f;
  }();
  df::Session session(graph, {.target = worker.target()});
  const auto run_with = [&](std::vector<std::string> keys) {
    task->answer = [&] {
      net::RunShareReply reply;
      for (const std::string& key : keys) reply.pushed.push_back({key, false, df::Tensor<float>(1.0f)});
      return reply;
    };
    return status_of([&] { session.run({.deadline = std::chrono::milliseconds(300)}, {}, here); });
  };
  const auto own = [&](const std::string& name) {
    return key_between(dishonest_task, dishonest_incarnation, honest_task, name);
  };
  for (int round = 0; round < 3; ++round) {
    // Nothing comes: the step has its deadline.
    CHECK(run_with({}).code() == df::Code::deadline_exceeded);
    const std::string of_other = key_between(honest_task, dishonest_incarnation, honest_task, "x");
    const std::string of_earlier = key_between(dishonest_task, dishonest_incarnation - 1, honest_task, "x");
    const std::string to_other = key_between(dishonest_task, dishonest_incarnation, dishonest_task, "x");
    for (const std::string& key : {of_other, of_earlier, to_other}) {
      const df::Status status = run_with({own("x"), key});
      CHECK(status.code() == df::Code::invalid_argument);
      CHECK(status.to_string().find("is not " + dishonest_task + "'s to send") != std::string::npos);
    }
    CHECK(run_with({"no key"}).code() == df::Code::invalid_argument);
    CHECK(run_with({own("x"), own("x")}).code() == df::Code::aborted);
    // What nobody wants changes nothing, also by the thousand.
    std::vector<std::string> unwanted;
    for (int i = 0; i < 6000; ++i) unwanted.push_back(own(std::to_string(i)));
    CHECK(run_with(unwanted).code() == df::Code::deadline_exceeded);
  }
}
