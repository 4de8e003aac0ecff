// What one client may keep in a task, and that it is gone with the client.
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/net/peers.hpp>
#include <dflow/net/transport/memory_transport.hpp>
#include <dflow/net/worker.hpp>
#include <dflow/runtime/default_devices.hpp>

#include "catch.hpp"
#include "errors.hpp"
#include "protocol/connection_harness.hpp"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

const std::string here = "/job:ps/replica:0/task:0";

class NoSource final : public TensorSource {
 public:
  void receive(const std::string&, std::uint64_t, const RendezvousKey&, const RecvArgs&, CancellationToken,
               Rendezvous::RecvDone done) override {
    done(unavailable("there is nobody else"), {}, false);
  }
  void push(const std::string&, std::uint64_t, const RendezvousKey&, const AnyTensor&, bool,
            UniqueFunction<void(Status)> failed) override {
    failed(unavailable("there is nobody else"));
  }
};

std::shared_ptr<Worker> small_worker() {
  const auto pool = std::make_shared<WorkStealingPool>(2);
  Worker::Options options;
  options.task = here;
  options.incarnation = 5;
  options.devices = make_default_devices({.task = here, .incarnation = 5, .pool = pool});
  options.pool = pool;
  options.clock = std::make_shared<RealClock>();
  options.steps = std::make_shared<StepTable>(StepTable::Options{.task = here, .source = std::make_shared<NoSource>()});
  options.max_sessions = 2;
  options.max_shares = 2;
  return std::make_shared<Worker>(std::move(options));
}

TaskIdentity client_of(int task, std::uint64_t incarnation = 1) {
  return {"", "/job:client/replica:0/task:" + std::to_string(task), incarnation, 0};
}

/// What is thrown by a request that has no reply.
Status tell(Worker& worker, const TaskIdentity& client, Method method, const ShareName& name) {
  Incoming request;
  request.method = static_cast<std::uint16_t>(method);
  request.body = to_body(name);
  request.payload = {std::byte{0}};  // no partitions
  Responder nobody;
  return status_of([&] { return worker.handle(client, request, nobody); });
}

class CountingService final : public Peers::Service {
 public:
  void on_request(const TaskIdentity&, Incoming&, Responder& respond) override { respond(Outgoing()); }
  void on_gone(const TaskIdentity& client, const Status&) override {
    const std::lock_guard lock(mutex_);
    gone_.push_back(client.task);
    changed_.notify_all();
  }
  bool wait_for(const std::string& task) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, test::patience, [&] { return std::count(gone_.begin(), gone_.end(), task) > 0; });
  }
  bool has(const std::string& task) {
    const std::lock_guard lock(mutex_);
    return std::count(gone_.begin(), gone_.end(), task) > 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> gone_;
};

}  // namespace

TEST_CASE("a client keeps as many sessions and shares as the options say", "[net]") {
  const auto worker = small_worker();
  const TaskIdentity client = client_of(1);
  CHECK(tell(*worker, client, Method::register_share, {1, 1}).ok());
  CHECK(tell(*worker, client, Method::register_share, {2, 1}).ok());
  for (int i = 0; i < 3; ++i) {
    const Status third = tell(*worker, client, Method::register_share, {3, 1});
    CHECK(third.code() == Code::resource_exhausted);
    CHECK(mentions(third, "more than 2 sessions of one client"));
  }
  CHECK(tell(*worker, client_of(2), Method::register_share, {3, 1}).ok());     // another client
  CHECK(tell(*worker, client_of(1, 2), Method::register_share, {3, 1}).ok());  // or another start of it
  CHECK(tell(*worker, client, Method::register_share, {1, 2}).ok());
  const Status third = tell(*worker, client, Method::register_share, {1, 3});
  CHECK(third.code() == Code::resource_exhausted);
  CHECK(mentions(third, "more than 2 shares of one session"));
  CHECK(tell(*worker, client, Method::register_share, {2, 1}).ok());  // a share that is sent again is the same
  CHECK(tell(*worker, client, Method::forget_share, {1, 2}).ok());
  CHECK(tell(*worker, client, Method::register_share, {1, 3}).ok());
  CHECK(tell(*worker, client, Method::close_session, {2, 0}).ok());
  CHECK(tell(*worker, client, Method::register_share, {3, 1}).ok());
  worker->forget_client(client, unavailable("it has gone"));
  CHECK(tell(*worker, client, Method::register_share, {7, 1}).ok());
  CHECK(tell(*worker, client, Method::register_share, {8, 1}).ok());
  // What is not there is forgotten at once.
  CHECK(tell(*worker, client, Method::forget_share, {9, 9}).ok());
  CHECK(tell(*worker, client, Method::close_session, {9, 0}).ok());
  worker->stop(unavailable("it stops"));
  CHECK(tell(*worker, client, Method::register_share, {7, 2}).code() == Code::unavailable);
}

TEST_CASE("a client is gone with its control connection, and one without with its last", "[net]") {
  const auto transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(2));
  const auto listener = transport->listen("here");
  Peers::Options options;
  options.transport = transport;
  options.connection = test::options_of(here);
  const auto peers = std::make_shared<Peers>(std::move(options));
  const auto service = std::make_shared<CountingService>();
  peers->set_service(service);
  const auto connect = [&](const std::string& task, Channel channel) {
    test::Ends ends = test::connected(*transport, *listener);
    peers->accept(std::move(ends.far));
    ConnectionOptions mine = test::options_of(task);
    mine.channel = channel;
    test::Opening opening;
    Connection::open(std::move(ends.near), Role::connector, mine, std::make_shared<test::Owner>(), opening.done());
    const auto connection = opening.wait().second;
    REQUIRE(connection != nullptr);
    test::Answered answered;
    connection->call({}, answered.done());
    CHECK(answered.wait().first.ok());  // the other side knows it, too
    return connection;
  };
  const auto data_only = connect("data only", Channel::data), second = connect("data only", Channel::data);
  const auto both = connect("both", Channel::control), both_data = connect("both", Channel::data);
  const auto bystander = connect("bystander", Channel::control), its_data = connect("bystander", Channel::data);
  data_only->close(cancelled("done"));
  its_data->close(cancelled("done"));
  both->close(cancelled("done"));
  CHECK(service->wait_for("both"));  // though there is a data connection
  CHECK_FALSE(service->has("bystander"));
  CHECK_FALSE(service->has("data only"));
  second->close(cancelled("done"));
  CHECK(service->wait_for("data only"));
  bystander->close(cancelled("done"));
  CHECK(service->wait_for("bystander"));
  both_data->close(cancelled("done"));
  peers->close(cancelled("done"));
}

TEST_CASE("of those that connect and do not say who they are so many are kept, and others see nothing", "[net]") {
  const auto transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(2));
  const auto listener = transport->listen("here");
  test::Lines lines;
  Peers::Options options;
  options.transport = transport;
  options.connection = test::options_of(here, std::make_shared<VirtualClock>());  // nothing ends by time
  options.connection.log = lines.log();
  options.max_handshakes = 100;
  const auto peers = std::make_shared<Peers>(std::move(options));
  const auto service = std::make_shared<CountingService>();
  peers->set_service(service);
  const auto enter = [&](const std::string& task) {
    test::Ends ends = test::connected(*transport, *listener);
    peers->accept(std::move(ends.far));
    test::Opening opening;
    Connection::open(std::move(ends.near), Role::connector, test::options_of(task), nullptr, opening.done());
    return opening.wait().second;
  };
  const auto is_answered = [](const std::shared_ptr<Connection>& connection) {
    test::Answered answered;
    connection->call({}, answered.done());
    return answered.wait().first.ok();
  };
  const auto before = enter("before");
  REQUIRE(before != nullptr);
  CHECK(is_answered(before));
  std::vector<std::unique_ptr<Stream>> idle;
  for (int i = 0; i < 500; ++i) {
    test::Ends ends = test::connected(*transport, *listener);
    peers->accept(std::move(ends.far));
    idle.push_back(std::move(ends.near));
  }
  CHECK(lines.count("more than 100 that have connected have not proved yet who they are") == 400);
  for (std::size_t i = 0; i < 400; ++i) {  // the oldest
    Status status;
    while (status.ok()) test::read(*idle[i], 1, &status);
    CHECK(status.code() == Code::unavailable);
  }
  const auto amid = enter("amid");
  REQUIRE(amid != nullptr);
  CHECK(is_answered(amid));
  CHECK(is_answered(before));
  CHECK_FALSE(service->has("before"));
  CHECK(lines.count("the task ends") == 0);
  peers->close(cancelled("the task ends"));
  CHECK(lines.count("the task ends") == 99);  // "amid" took the place of one
}
