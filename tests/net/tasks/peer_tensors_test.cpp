#include <dflow/net/tasks/peer_tensors.hpp>

#include <dflow/core/tensor.hpp>
#include <dflow/net/simulation/simulation.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include "../protocol/connection_harness.hpp"
#include "catch.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

const std::string telling_task = "/job:ps/replica:0/task:0";
const std::string told_task = "/job:worker/replica:0/task:0";

/// Tells other tasks of the tensors that they have not read.
class RecallingService final : public Peers::Service {
 public:
  explicit RecallingService(std::weak_ptr<PeerTensors> tensors) : tensors_(std::move(tensors)) {}
  void on_request(const TaskIdentity&, const Visit&, Incoming&, Responder& respond) override { respond(Outgoing()); }
  void on_gone(const Visit&, const Status&) override {}
  void on_unread(const std::string& task, std::vector<std::uint64_t> steps, const Status& why) override {
    if (const auto tensors = tensors_.lock()) tensors->recall(task, std::move(steps), why);
  }

 private:
  const std::weak_ptr<PeerTensors> tensors_;
};

}  // namespace

TEST_CASE("a task that ends each connection is told of lost tensors after pauses, and for some time only", "[net]") {
  Simulation simulation{1};
  const auto process = simulation.start("process");
  const auto transport = std::make_shared<MemoryTransport>(process->pool());
  const auto listener = transport->listen("there");
  std::unique_ptr<Stream> stream;
  std::vector<std::shared_ptr<Connection>> accepted;
  bool ends = true;
  const auto handler = std::make_shared<test::Owner>(
      [&](const std::shared_ptr<Connection>& connection, const Incoming&, Responder respond) {
        if (ends) return connection->close(Status::unavailable("the task has ended"));
        if (respond.is_due()) respond(Outgoing());
      });
  const std::function<void()> accept = [&] {
    listener->accept(stream, [&](const Status& status) {
      if (!status.ok()) return;
      ends = accepted.size() < 1000;  // else it would go on for ever
      accepted.push_back(Connection::open(std::move(stream), Role::acceptor,
                                          test::options_of(told_task, process->clock()), handler,
                                          [](const Status&, const auto&) {}));
      accept();
    });
  };
  accept();
  Peers::Options options;
  options.transport = transport;
  options.connection = test::options_of(telling_task, process->clock());
  options.addresses = {{told_task, "there"}};
  const auto peers = std::make_shared<Peers>(std::move(options));
  const auto tensors = std::make_shared<PeerTensors>(PeerTensors::Options{.task = telling_task,
                                                                          .peers = peers,
                                                                          .clock = process->clock(),
                                                                          .random = [] { return 0; },
                                                                          .recall_timeout = std::chrono::minutes(1)});
  peers->set_service(std::make_shared<RecallingService>(tensors));
  const RendezvousKey key(telling_task + "/device:CPU:0", 11, told_task + "/device:CPU:0", "x");
  tensors->push(told_task, 7, key, Tensor<float>(1.0f), false, nullptr, [](const Status&) {});
  simulation.run_for(std::chrono::minutes(2));
  CHECK(accepted.size() > 10);
  CHECK(accepted.size() < 200);
  const std::size_t before = accepted.size();
  simulation.run_for(std::chrono::hours(1));
  CHECK(accepted.size() == before);
  listener->close();
  peers->close(Status::cancelled("the test is over"));
}

TEST_CASE("a task that is away is told once of each step that has lost tensors, however many, when it comes", "[net]") {
  const int seconds_away = GENERATE(5, 30);
  Simulation simulation{1};
  const auto process = simulation.start("process");
  const auto transport = std::make_shared<MemoryTransport>(process->pool());
  Peers::Options options;
  options.transport = transport;
  options.connection = test::options_of(telling_task, process->clock());
  options.addresses = {{told_task, "there"}};
  const auto peers = std::make_shared<Peers>(std::move(options));
  const auto tensors = std::make_shared<PeerTensors>(PeerTensors::Options{.task = telling_task,
                                                                          .peers = peers,
                                                                          .clock = process->clock(),
                                                                          .random = [] { return 0; },
                                                                          .recall_timeout = std::chrono::minutes(1)});
  peers->set_service(std::make_shared<RecallingService>(tensors));
  const RendezvousKey key(telling_task + "/device:CPU:0", 11, told_task + "/device:CPU:0", "x");
  int num_failed = 0;
  const auto push = [&](std::uint64_t step) {
    tensors->push(told_task, step, key, Tensor<float>(1.0f), false, nullptr, [&](const Status&) { ++num_failed; });
  };
  for (const std::uint64_t step : {7, 7, 7, 8, 8}) push(step);
  simulation.run_for(std::chrono::seconds(50));
  push(9);  // its time is not over when that of the others is
  simulation.run_for(std::chrono::seconds(seconds_away));
  CHECK(num_failed == 6);

  const auto listener = transport->listen("there");
  std::unique_ptr<Stream> stream;
  std::vector<std::shared_ptr<Connection>> accepted;
  std::vector<std::uint64_t> told;
  const auto handler = std::make_shared<test::Owner>(
      [&](const std::shared_ptr<Connection>&, const Incoming& request, Responder respond) {
        if (request.method == static_cast<std::uint16_t>(Method::cancel_step)) {
          told.push_back(from_body<CancelStep>(request.body).step);
        }
        if (respond.is_due()) respond(Outgoing());
      });
  listener->accept(stream, [&](const Status& status) {
    if (!status.ok()) return;
    accepted.push_back(Connection::open(std::move(stream), Role::acceptor,
                                        test::options_of(told_task, process->clock()), handler,
                                        [](const Status&, const auto&) {}));
  });
  simulation.run_for(std::chrono::seconds(10));
  CHECK(told == std::vector<std::uint64_t>{7, 8, 9});
  push(10);
  simulation.run_for(std::chrono::seconds(10));
  CHECK(told == std::vector<std::uint64_t>{7, 8, 9});  // it has come
  listener->close();
  peers->close(Status::cancelled("the test is over"));
}
