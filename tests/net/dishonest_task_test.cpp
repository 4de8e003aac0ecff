// A parameter server that answers runs with tensors that it may not send.
#include <dflow/dflow.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
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
  std::function<net::RunShareReply()> answer = [] { return net::RunShareReply(); };
  std::function<df::StatusOr<net::Outgoing>()> tensor;  ///< the requested tensor
  std::vector<df::DeviceInfo> devices = {device("CPU:0")};

  static df::DeviceInfo device(const std::string& name) {
    df::DeviceInfo device;
    device.name = dishonest_task + "/device:" + name;
    device.type = "CPU";
    device.incarnation = dishonest_incarnation;
    return device;
  }

  void on_request(const std::shared_ptr<net::Connection>&, net::Incoming request, net::Responder respond) override {
    const auto method = static_cast<net::Method>(request.method);
    if (method == net::Method::list_devices) {
      return respond(net::Outgoing{net::to_body(net::DeviceList{devices}), {}});
    }
    if (method == net::Method::run_share) return respond(net::Outgoing{net::to_body(answer()), {}});
    if (method == net::Method::receive_tensor) return respond(tensor());
    respond(net::Outgoing());
  }
  void on_closed(net::Connection&, const df::Status&) override {}
};

/// Listens at the address of the dishonest task as long as it lives.
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
    for (const auto& connection : open) connection->close(df::Status::unavailable("the test is over"));
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

/// A worker with only one parameter server, the dishonest task.
struct DishonestCluster {
  net::ServerOptions options;
  std::shared_ptr<DishonestTask> task = std::make_shared<DishonestTask>();
  std::unique_ptr<DishonestListener> listener;
  std::unique_ptr<net::Server> worker;

  DishonestCluster() {
    options.transport = std::make_shared<net::MemoryTransport>(
        std::make_shared<df::WorkStealingPool>(2, df::ThreadPoolOptions{.name = "io"}));
    options.num_threads = 1;
    options.log = [](std::string_view) {};
    net::ClusterSpec spec;
    spec.add_task("ps", 0, "ps0");
    spec.add_task("worker", 0, "worker0");
    spec.set_task("worker", 0);
    listener = std::make_unique<DishonestListener>(*options.transport, "ps0", task);
    worker = std::make_unique<net::Server>(spec, options);
  }
};

/// A reply with this head and this number of bytes.
net::Outgoing tensor_of(const net::TensorHead& head, std::size_t bytes) {
  net::Outgoing reply{net::to_body(head), {}};
  const auto payload = std::make_shared<const std::vector<std::byte>>(bytes);
  if (bytes != 0) reply.payload = {{std::span(*payload)}, payload};
  return reply;
}

}  // namespace

TEST_CASE("a task that answers with tensors of others, or that nobody has asked for, ends the step", "[net]") {
  DishonestCluster cluster;
  const std::shared_ptr<DishonestTask>& task = cluster.task;
  df::Graph graph;
  const auto there = [&] {
    const auto on = graph.device("/job:ps/task:0");
    return df::random_uniform<float>(graph, {});
  }();
  const auto here = [&] {
    const auto on = graph.device("/job:worker/task:0");
    return there * 2.0f;
  }();
  df::Session session(graph, {.target = cluster.worker->target()});
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
    // Nothing comes: the step ends at its deadline.
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
    // Unwanted tensors change nothing, not even by the thousand.
    std::vector<std::string> unwanted;
    for (int i = 0; i < 6000; ++i) unwanted.push_back(own(std::to_string(i)));
    CHECK(run_with(unwanted).code() == df::Code::deadline_exceeded);
  }
}

TEST_CASE("a task that is asked for a tensor and sends something else ends the step, and no more", "[net]") {
  DishonestCluster cluster;
  df::Graph graph;
  const auto there = [&] {  // too large to come unasked
    const auto on = graph.device("/job:ps/task:0");
    return df::random_uniform<float>(graph, {200, 200});
  }();
  const auto here = [&] {
    const auto on = graph.device("/job:worker/task:0");
    return df::reduce_sum(there * 2.0f);
  }();
  df::Session session(graph, {.target = cluster.worker->target()});
  const auto run_with = [&](df::StatusOr<net::Outgoing> tensor) {
    cluster.task->tensor = [&] { return tensor; };
    return status_of([&] { session.run(here); });
  };
  const auto live = [](df::DType dtype, df::Shape shape) { return net::TensorHead{false, dtype, std::move(shape)}; };
  const net::TensorHead asked = live(df::DType::float32, df::Shape({200, 200}));
  constexpr std::size_t bytes = 160'000;
  const auto cut = net::to_body(asked).substr(0, 3);
  for (int round = 0; round < 2; ++round) {
    CHECK(run_with(tensor_of(asked, bytes)).ok());
    const df::Code wrong = df::Code::invalid_argument, damaged = df::Code::data_loss;
    CHECK(run_with(tensor_of(live(df::DType::int32, df::Shape({200, 200})), bytes)).code() == wrong);
    CHECK(run_with(tensor_of(live(df::DType::float32, df::Shape({200, 199})), bytes - 800)).code() == wrong);
    CHECK(run_with(tensor_of(live(df::DType::float32, df::Shape({40'000})), bytes)).code() == wrong);
    CHECK(run_with(tensor_of(live(df::DType::float32, df::Shape({1 << 30, 1 << 30})), bytes)).code() == wrong);
    CHECK(run_with(tensor_of(live(df::DType::string, df::Shape({200, 200})), bytes)).code() == wrong);
    CHECK(run_with(tensor_of(asked, bytes - 4)).code() == damaged);
    CHECK(run_with(tensor_of(asked, bytes + 4)).code() == damaged);
    CHECK(run_with(tensor_of(asked, 0)).code() == damaged);
    CHECK(run_with(tensor_of({true, df::DType::invalid, {}}, bytes)).code() == damaged);
    CHECK_FALSE(run_with(tensor_of({true, df::DType::invalid, {}}, 0)).ok());  // on a branch that was not taken
    CHECK(run_with(net::Outgoing{cut, {}}).code() == damaged);
    CHECK(run_with(net::Outgoing{"", {}}).code() == damaged);
    CHECK(run_with(net::Outgoing{net::to_body(asked) + "x", {}}).code() == damaged);
    const df::Status told = run_with(df::Status::aborted(std::string(std::size_t{100} << 20, 'x')));
    CHECK(told.code() == df::Code::aborted);
    CHECK(told.message().size() <= std::size_t{1} << 20);
  }
}

TEST_CASE("a task that lists a device twice, or by an odd name, has no session", "[net]") {
  DishonestCluster cluster;
  df::Graph graph;
  static_cast<void>(df::constant(graph, 1.0f));
  const auto listing = [&](std::vector<df::DeviceInfo> devices) {
    cluster.task->devices = std::move(devices);
    return status_of([&] { df::Session session(graph, {.target = cluster.worker->target()}); });
  };
  const auto device = DishonestTask::device;
  CHECK(listing({device("CPU:0"), device("CPU:1")}).ok());
  CHECK(listing({}).ok());
  df::DeviceInfo of_other = device("CPU:0"), of_earlier = device("CPU:0"), of_type = device("CPU:0");
  of_other.name = honest_task + "/device:CPU:1";
  of_earlier.incarnation -= 1;
  of_type.type = "GPU";
  const std::vector<std::vector<df::DeviceInfo>> lists = {{device("CPU:0"), device("CPU:0")},
                                                          {device("CPU:00")},
                                                          {device("")},
                                                          {device("CPU:*")},
                                                          {of_other},
                                                          {of_earlier},
                                                          {of_type}};
  for (const auto& list : lists) {
    const df::Status status = listing(list);
    INFO(list.back().name << ": " << status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(status.task() == dishonest_task);
    CHECK(mentions(status, "among its devices"));
  }
}
