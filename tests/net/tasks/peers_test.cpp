#include <dflow/net/master/cluster_tasks.hpp>
#include <dflow/net/tasks/peers.hpp>

#include <dflow/net/simulation/simulation.hpp>
#include <dflow/net/tasks/step_table.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include "../protocol/connection_harness.hpp"
#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

const std::string peers_task = "/job:ps/replica:0/task:0";
const std::string other_task = "/job:worker/replica:0/task:0";

class NobodyElse final : public TensorSource {
 public:
  void receive(const std::string&, std::uint64_t, const RendezvousKey&, const RecvArgs&, CancellationToken,
               Rendezvous::RecvDone done) override {
    done(Status::unavailable("there is nobody else"), {}, false);
  }
  void push(const std::string&, std::uint64_t, const RendezvousKey&, const AnyTensor&, bool, UniqueFunction<bool()>,
            UniqueFunction<void(Status)> failed) override {
    failed(Status::unavailable("there is nobody else"));
  }
};

/// Steps that wait for tensors of the other task. Whenever a connection with that task is lost, another step begins
/// before the service hears of the loss.
class WaitingService final : public Peers::Service {
 public:
  void on_request(const TaskIdentity&, const Visit&, Incoming&, Responder& respond) override { respond(Outgoing()); }
  void on_gone(const Visit&, const Status&) override {}
  void on_lost(const TaskIdentity& peer, std::uint64_t mark, const Status& why) override {
    wait_in_a_step();
    steps_->cancel_waits_for(peer.task, peer.incarnation, mark, why);
    if (!has_lost_.exchange(true)) lost_.set_value();
  }
  std::uint64_t mark() const noexcept override { return steps_->next_entry()->load(); }

  void wait_in_a_step() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = begun_.size();
    begun_.push_back(steps_->begin(number, "client"));
    ended_.push_back(std::make_shared<Status>());
    begun_.back()->recv_async(
        RendezvousKey(other_task + "/device:CPU:0", 11, peers_task + "/device:CPU:0", "x"), {.pushed = true},
        [ended = ended_.back()](Status status, const AnyTensor&, bool) { *ended = std::move(status); });
  }
  /// Waits until the first loss is reported; call it once.
  void await_loss() { lost_.get_future().wait(); }
  Code ended(std::size_t number) {
    const std::lock_guard lock(mutex_);
    return ended_.at(number)->code();
  }
  void end() { steps_->cancel_all(Status::cancelled("the test is over")); }

 private:
  const std::shared_ptr<StepTable> steps_ =
      std::make_shared<StepTable>(StepTable::Options{.task = peers_task, .source = std::make_shared<NobodyElse>()});
  std::atomic<bool> has_lost_{false};
  std::promise<void> lost_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<StepRendezvous>> begun_;
  std::vector<std::shared_ptr<Status>> ended_;
};

}  // namespace

TEST_CASE("who begins to wait for a task when the connection with it is lost is not told of that loss", "[net]") {
  const bool is_replaced = GENERATE(false, true);
  const auto transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(2));
  const auto listener = transport->listen("here");
  Peers::Options options;
  options.transport = transport;
  options.connection = test::options_of(peers_task);
  const auto peers = std::make_shared<Peers>(std::move(options));
  const auto service = std::make_shared<WaitingService>();
  peers->set_service(service);
  const auto connect = [&] {
    test::Ends ends = test::connected(*transport, *listener);
    peers->accept(std::move(ends.far));
    test::Opening opening;
    Connection::open(std::move(ends.near), Role::connector, test::options_of(other_task),
                     std::make_shared<test::Owner>(), opening.done());
    const auto connection = opening.wait().second;
    REQUIRE(connection != nullptr);
    test::Answered answered;
    connection->call({}, answered.done());
    CHECK(answered.wait().first.ok());  // the other side knows it, too
    return connection;
  };
  const auto first = connect();
  service->wait_in_a_step();
  const auto second = is_replaced ? connect() : nullptr;
  first->close(Status::cancelled("done"));
  service->await_loss();
  CHECK(service->ended(0) != Code::ok);
  CHECK(service->ended(1) == Code::ok);  // it waits
  service->end();
  if (second != nullptr) second->close(Status::cancelled("done"));
  peers->close(Status::cancelled("done"));
}

namespace {

/// A task that accepts connections and sends nothing, and a task that wants to connect to it, in one thread.
struct SilentTask {
  SilentTask() {
    accept();
    Peers::Options options;
    options.transport = transport;
    options.connection = test::options_of(peers_task, process->clock());
    options.connection.log = lines.log();
    options.addresses = {{other_task, "silent"}};
    peers = std::make_shared<Peers>(std::move(options));
  }
  ~SilentTask() { listener->close(); }
  void accept() {
    listener->accept(stream, [this](const Status& status) {
      if (!status.ok()) return;
      kept.push_back(std::move(stream));
      accept();
    });
  }
  void connect(Clock::time_point until) {
    peers->connect(other_task, Channel::control, until,
                   [this](Status status, const auto&) { told = std::move(status); });
  }

  Simulation simulation{1};
  std::shared_ptr<SimulatedProcess> process = simulation.start("process");
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(process->pool());
  std::unique_ptr<Listener> listener = transport->listen("silent");
  std::unique_ptr<Stream> stream;
  std::vector<std::unique_ptr<Stream>> kept;
  test::Lines lines;
  std::shared_ptr<Peers> peers;
  std::optional<Status> told;
};

}  // namespace

TEST_CASE("whoever ends waits for no handshake of its own, and logs nothing afterwards", "[net]") {
  SilentTask silent;
  silent.connect({});
  silent.simulation.run_for(std::chrono::milliseconds(100));
  CHECK(silent.kept.size() == 1);
  CHECK_FALSE(silent.told.has_value());
  silent.peers->close(Status::cancelled("the task ends"));
  REQUIRE(silent.told.has_value());
  CHECK(silent.told->code() == Code::cancelled);
  silent.simulation.run_for(std::chrono::milliseconds(10));
  const std::weak_ptr<Peers> gone = silent.peers;
  silent.peers = nullptr;
  CHECK(gone.expired());
  const std::size_t said = silent.lines.count("");
  silent.simulation.run_for(std::chrono::hours(1));
  CHECK(silent.lines.count("") == said);
}

TEST_CASE("a handshake takes no longer than those who wait for it", "[net]") {
  SilentTask silent;
  const auto begin = silent.simulation.now();
  silent.connect(silent.simulation.after(std::chrono::milliseconds(700)));
  CHECK(silent.simulation.run_until([&] { return silent.told.has_value(); },
                                    silent.simulation.after(std::chrono::minutes(1))));
  REQUIRE(silent.told.has_value());
  CHECK(silent.told->code() == Code::unavailable);
  const auto took = silent.simulation.now() - begin;
  CHECK(took >= std::chrono::milliseconds(700));
  CHECK(took < std::chrono::milliseconds(1300));
  silent.peers->close(Status::cancelled("the test is over"));
}

TEST_CASE("tasks that do not answer are named in the log, by their addresses, ever more seldom", "[net]") {
  SilentTask silent;
  ClusterTasks::Options options;
  options.client = peers_task;
  options.peers = silent.peers;
  options.steps =
      std::make_shared<StepTable>(StepTable::Options{.task = peers_task, .source = std::make_shared<NobodyElse>()});
  options.clock = silent.process->clock();
  options.pool = silent.process->pool();
  std::optional<Status> found;
  const auto done = [&](Status status, const auto&) { found = std::move(status); };
  ClusterTasks::find_async(options, {other_task}, std::chrono::seconds(60), done);
  silent.simulation.run_for(std::chrono::milliseconds(1900));
  CHECK(silent.lines.count("a session has waited") == 0);
  silent.simulation.run_for(std::chrono::milliseconds(200));
  CHECK(silent.lines.count("a session has waited for 2 s for 1 of 1 other tasks: " + other_task + " (silent)") == 1);
  silent.simulation.run_for(std::chrono::minutes(5));
  CHECK(silent.lines.count("a session has waited") == 4);  // at 2, 6, 14 and 30 s
  REQUIRE(found.has_value());
  CHECK(found->code() == Code::unavailable);
  CHECK(mentions(*found, "cannot be reached at silent"));
  silent.peers->close(Status::cancelled("the test is over"));
}

TEST_CASE("clients may be so many, and tasks of the cluster come besides", "[net]") {
  const auto transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(2));
  const auto listener = transport->listen("here");
  test::Lines lines;
  Peers::Options options;
  options.transport = transport;
  options.connection = test::options_of(peers_task);
  options.connection.log = lines.log();
  options.addresses = {{other_task, "nowhere"}};
  options.max_client_connections = 2;
  const auto peers = std::make_shared<Peers>(std::move(options));
  peers->set_service(std::make_shared<WaitingService>());
  std::vector<std::shared_ptr<Connection>> connections;
  const auto is_let_in = [&](const std::string& name, Channel channel = Channel::control) {
    test::Ends ends = test::connected(*transport, *listener);
    peers->accept(std::move(ends.far));
    auto its = test::options_of(name);
    its.channel = channel;
    test::Opening opening;
    const auto owner = std::make_shared<test::Owner>();
    Connection::open(std::move(ends.near), Role::connector, std::move(its), owner, opening.done());
    connections.push_back(opening.wait().second);
    REQUIRE(connections.back() != nullptr);
    test::Answered answered;
    connections.back()->call({}, answered.done());
    return answered.wait().first.ok();
  };
  CHECK(is_let_in("/job:client/replica:0/task:1"));
  CHECK(is_let_in("/job:client/replica:0/task:2"));
  CHECK_FALSE(is_let_in("/job:client/replica:0/task:3"));
  CHECK(is_let_in(other_task));
  CHECK(lines.count("more than 2 connections of clients") == 1);
  // A connection that the same start of a client has lost does not count against the client, even if this side has not
  // noticed the loss yet.
  CHECK(is_let_in("/job:client/replica:0/task:1"));
  CHECK(is_let_in("/job:client/replica:0/task:1"));
  CHECK_FALSE(is_let_in("/job:client/replica:0/task:3"));
  // The client's other channel counts as one more. Clients that connect again are let in all the same.
  CHECK_FALSE(is_let_in("/job:client/replica:0/task:1", Channel::data));
  CHECK(is_let_in("/job:client/replica:0/task:2"));
  for (const auto& connection : connections) connection->close(Status::cancelled("done"));
  peers->close(Status::cancelled("done"));
}

TEST_CASE("another start of a task takes the place of the earlier one, of a client it does not", "[net]") {
  const std::string client = "/job:client/replica:0/task:1";
  const auto transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(2));
  const auto listener = transport->listen("here");
  Peers::Options options;
  options.transport = transport;
  options.connection = test::options_of(peers_task);
  options.addresses = {{other_task, "nowhere"}};
  const auto peers = std::make_shared<Peers>(std::move(options));
  peers->set_service(std::make_shared<WaitingService>());
  const auto answer = [](const std::shared_ptr<Connection>& connection) {
    test::Answered answered;
    connection->call({}, answered.done());
    return answered.wait().first;
  };
  std::vector<std::shared_ptr<Connection>> connections;
  const auto connect = [&](const std::string& name, std::uint64_t incarnation) {
    test::Ends ends = test::connected(*transport, *listener);
    peers->accept(std::move(ends.far));
    auto its = test::options_of(name);
    its.self.incarnation = incarnation;
    test::Opening opening;
    Connection::open(std::move(ends.near), Role::connector, std::move(its), std::make_shared<test::Owner>(),
                     opening.done());
    connections.push_back(opening.wait().second);
    REQUIRE(connections.back() != nullptr);
    return connections.back();
  };
  for (const std::string& name : {client, other_task}) {
    const auto first = connect(name, 11);
    CHECK(answer(first).ok());
    const auto second = connect(name, 12);
    CHECK(answer(second).ok());
    const Status of_first = answer(first), of_earlier = answer(connect(name, 10));
    CHECK(answer(second).ok());
    CHECK(of_first.ok() == (name == client));
    CHECK(of_earlier.ok() == (name == client));
    if (name == client) continue;
    CHECK(mentions(of_first, "has been started anew"));
    CHECK(mentions(of_earlier, "has been started anew since this one was started"));
  }
  for (const auto& connection : connections) connection->close(Status::cancelled("done"));
  peers->close(Status::cancelled("done"));
}

namespace {

/// Notes the methods of requests in the order in which they are begun. The method 1 waits until another is done.
class OrderedService final : public Peers::Service {
 public:
  void on_request(const TaskIdentity& client, const Visit&, Incoming& request, Responder& respond) override {
    {
      const std::lock_guard lock(mutex_);
      if (client.task == other_task) begun_.push_back(request.method);
    }
    if (request.method == 1) is_held_.wait(true);
    if (client.task != other_task) release();
    if (respond.is_due()) respond(Outgoing());
  }
  void on_gone(const Visit&, const Status&) override {}
  void release() {
    is_held_ = false;
    is_held_.notify_all();
  }
  std::vector<int> begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

 private:
  std::atomic<bool> is_held_{true};
  std::mutex mutex_;
  std::vector<int> begun_;
};

/// Peers whose connections share one I/O thread.
struct OneIoThread {
  explicit OneIoThread(std::size_t max_waiting_bytes = 64 << 20) {
    Peers::Options options;
    options.transport = transport;
    options.connection = test::options_of(peers_task);
    options.pool = std::make_shared<WorkStealingPool>(1);
    options.max_waiting_bytes = max_waiting_bytes;
    peers = std::make_shared<Peers>(std::move(options));
    peers->set_service(service);
  }
  ~OneIoThread() {
    service->release();
    for (const auto& connection : connections) connection->close(Status::cancelled("done"));
    peers->close(Status::cancelled("done"));
  }
  std::shared_ptr<Connection> connect(const std::string& name) {
    test::Ends ends = test::connected(*transport, *listener);
    peers->accept(std::move(ends.far));
    test::Opening opening;
    Connection::open(std::move(ends.near), Role::connector, test::options_of(name), std::make_shared<test::Owner>(),
                     opening.done());
    connections.push_back(opening.wait().second);
    REQUIRE(connections.back() != nullptr);
    return connections.back();
  }
  static void call(const std::shared_ptr<Connection>& connection, std::uint16_t method, std::size_t bytes,
                   test::Answered& answered) {
    Call call;
    call.method = method;
    call.message.body.assign(bytes, 'x');
    connection->call(std::move(call), answered.done());
  }

  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(1));
  std::unique_ptr<Listener> listener = transport->listen("here");
  std::shared_ptr<OrderedService> service = std::make_shared<OrderedService>();
  std::shared_ptr<Peers> peers;
  std::vector<std::shared_ptr<Connection>> connections;
};

}  // namespace

TEST_CASE("a long request keeps no other connection waiting, and those behind it keep their order", "[net]") {
  OneIoThread one;
  const auto connection = one.connect(other_task), other = one.connect("/job:client/replica:0/task:1");
  test::Answered answered[5];
  one.call(connection, 1, 1 << 20, answered[0]);
  one.call(connection, 2, 10, answered[1]);
  one.call(connection, 3, 1 << 20, answered[2]);
  CHECK(connection->post(4, "a post").ok());
  one.call(connection, 5, 10, answered[3]);
  one.call(other, 6, 10, answered[4]);  // which lets the first one go on
  CHECK(answered[4].wait().first.ok());
  for (int i = 0; i < 4; ++i) CHECK(answered[i].wait().first.ok());
  CHECK(one.service->begun() == std::vector<int>{1, 2, 3, 4, 5});
  test::Answered next;
  one.call(connection, 6, 10, next);
  CHECK(next.wait().first.ok());
}

TEST_CASE("requests that wait behind a long one are so many bytes at most", "[net]") {
  OneIoThread one(3 << 20);
  const auto connection = one.connect(other_task), other = one.connect("/job:client/replica:0/task:1");
  test::Answered answered[4];
  one.call(connection, 1, 1 << 20, answered[0]);
  one.call(connection, 2, 1 << 20, answered[1]);
  one.call(connection, 3, 1 << 20, answered[2]);
  const Status refused = answered[2].wait().first;
  CHECK(refused.code() == Code::resource_exhausted);
  CHECK(mentions(refused, "requests of 3145728 bytes wait already"));
  one.call(other, 6, 10, answered[3]);
  for (const int i : {0, 1, 3}) CHECK(answered[i].wait().first.ok());
  CHECK(one.service->begun() == std::vector<int>{1, 2});
}

TEST_CASE("of requests that wait, those of a connection that has ended are not begun, but its posts are", "[net]") {
  OneIoThread one(3 << 20);
  const auto connection = one.connect(other_task);
  test::Answered answered[4];
  one.call(connection, 1, 1 << 20, answered[0]);
  one.call(connection, 2, 10, answered[1]);
  CHECK(connection->post(4, "a post").ok());
  one.call(connection, 3, 3 << 20, answered[2]);
  CHECK(answered[2].wait().first.code() == Code::resource_exhausted);  // so the others wait
  connection->close(Status::cancelled("the client ends"));
  while (!one.peers->connections().empty()) std::this_thread::yield();
  one.call(one.connect("/job:client/replica:0/task:1"), 6, 10, answered[3]);
  CHECK(answered[3].wait().first.ok());
  while (one.service->begun().size() < 2) std::this_thread::yield();
  CHECK(one.service->begun() == std::vector<int>{1, 4});
}
