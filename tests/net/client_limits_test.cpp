// The limits of the items that one client may keep in a task. The items go away with the client.
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/net/tasks/peers.hpp>
#include <dflow/net/tasks/worker.hpp>
#include <dflow/net/transport/memory_transport.hpp>
#include <dflow/runtime/default_devices.hpp>

#include "catch.hpp"
#include "protocol/connection_harness.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <latch>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

const std::string here = "/job:ps/replica:0/task:0";

class NoSource final : public TensorSource {
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

std::shared_ptr<StepTable> steps_without_source() {
  return std::make_shared<StepTable>(StepTable::Options{.task = here, .source = std::make_shared<NoSource>()});
}

std::shared_ptr<Worker> small_worker(std::shared_ptr<StepTable> steps = steps_without_source()) {
  const auto pool = std::make_shared<WorkStealingPool>(2);
  Worker::Options options;
  options.task = here;
  options.incarnation = 5;
  options.devices = make_default_devices({.task = here, .incarnation = 5, .pool = pool});
  options.pool = pool;
  options.clock = std::make_shared<RealClock>();
  options.steps = std::move(steps);
  options.max_sessions = 2;
  options.max_shares = 2;
  return std::make_shared<Worker>(std::move(options));
}

Visit visit_of(int task, std::uint64_t incarnation = 1, std::uint64_t number = 1) {
  return {TaskIdentity{"", "/job:client/replica:0/task:" + std::to_string(task), incarnation, 0}, number};
}

/// The error of a request that has no reply.
Status tell(Worker& worker, const Visit& visit, Method method, const ShareName& name) {
  Incoming request;
  request.method = static_cast<std::uint16_t>(method);
  request.body = to_body(name);
  request.payload = {std::byte{0}};  // no partitions
  Responder nobody;
  return status_of([&] { return worker.handle(visit, request, nobody); });
}

RendezvousKey key_from(const Visit& visit, const std::string& name) {
  return {visit.id().task + "/device:CPU:0", visit.id().incarnation, here + "/device:CPU:0", name};
}

/// The client sends a tensor for a step; a dead one, if it is null.
void push(Worker& worker, const Visit& visit, std::uint64_t step, const std::string& name = "x",
          const AnyTensor& tensor = Tensor<float>(1.0f), std::shared_ptr<ByteBudget> budget = nullptr) {
  Incoming request;
  request.method = static_cast<std::uint16_t>(Method::push_tensor);
  request.body = to_body(PushTensor{step, {key_from(visit, name).text(), !tensor.is_initialized(), tensor}});
  request.budget = std::move(budget);
  Responder nobody;
  CHECK(worker.handle(visit, request, nobody));
}

class CountingService final : public Peers::Service {
 public:
  void on_request(const TaskIdentity&, const Visit&, Incoming&, Responder& respond) override { respond(Outgoing()); }
  void on_gone(const Visit& visit, const Status&) override {
    const std::lock_guard lock(mutex_);
    gone_.push_back(visit.id().task);
    changed_.notify_all();
  }
  bool wait_for(const std::string& task, std::ptrdiff_t times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, test::patience,
                             [&] { return std::count(gone_.begin(), gone_.end(), task) >= times; });
  }
  bool has(const std::string& task) { return count(task) > 0; }
  std::ptrdiff_t count(const std::string& task) {
    const std::lock_guard lock(mutex_);
    return std::count(gone_.begin(), gone_.end(), task);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> gone_;
};

/// A worker that learns late that the first visit is over.
class LateService final : public Peers::Service {
 public:
  explicit LateService(std::shared_ptr<Worker> worker) : worker_(std::move(worker)) {}

  void on_request(const TaskIdentity&, const Visit& visit, Incoming& request, Responder& respond) override {
    worker_->handle(visit, request, respond);
  }
  void on_gone(const Visit& visit, const Status& why) override {
    if (has_begun_.exchange(true)) return worker_->forget(visit, why);
    gone_.count_down();
    told_.wait();
    worker_->forget(visit, why);
    done_.count_down();
  }
  void wait_until_gone() { gone_.wait(); }
  /// Returns when the worker knows.
  void tell() {
    told_.count_down();
    done_.wait();
  }

 private:
  const std::shared_ptr<Worker> worker_;
  std::atomic<bool> has_begun_{false};
  std::latch gone_{1}, told_{1}, done_{1};
};

}  // namespace

TEST_CASE("a client keeps as many sessions and shares as the options say", "[net]") {
  const auto worker = small_worker();
  Visit client = visit_of(1);
  CHECK(tell(*worker, client, Method::register_share, {1, 1}).ok());
  CHECK(tell(*worker, client, Method::register_share, {2, 1}).ok());
  for (int i = 0; i < 3; ++i) {
    const Status third = tell(*worker, client, Method::register_share, {3, 1});
    CHECK(third.code() == Code::resource_exhausted);
    CHECK(mentions(third, "more than 2 sessions of one client"));
  }
  CHECK(tell(*worker, visit_of(2), Method::register_share, {3, 1}).ok());     // another client
  CHECK(tell(*worker, visit_of(1, 2), Method::register_share, {3, 1}).ok());  // or another start of it
  CHECK(tell(*worker, client, Method::register_share, {1, 2}).ok());
  const Status third = tell(*worker, client, Method::register_share, {1, 3});
  CHECK(third.code() == Code::resource_exhausted);
  CHECK(mentions(third, "more than 2 shares of one session"));
  CHECK(tell(*worker, client, Method::register_share, {2, 1}).ok());  // a share that is sent again is the same
  CHECK(tell(*worker, client, Method::forget_share, {1, 2}).ok());
  CHECK(tell(*worker, client, Method::register_share, {1, 3}).ok());
  CHECK(tell(*worker, client, Method::close_session, {2, 0}).ok());
  CHECK(tell(*worker, client, Method::register_share, {3, 1}).ok());
  client.end();
  worker->forget(client, Status::unavailable("it has gone"));
  CHECK(tell(*worker, client, Method::register_share, {7, 1}).code() == Code::unavailable);
  const Visit next = visit_of(1, 1, 2);
  CHECK(tell(*worker, next, Method::register_share, {7, 1}).ok());
  CHECK(tell(*worker, next, Method::register_share, {8, 1}).ok());
  // A request to forget an unknown item ends at once.
  CHECK(tell(*worker, next, Method::forget_share, {9, 9}).ok());
  CHECK(tell(*worker, next, Method::close_session, {9, 0}).ok());
  worker->stop(Status::unavailable("it stops"));
  CHECK(tell(*worker, next, Method::register_share, {7, 2}).code() == Code::unavailable);
}

TEST_CASE("the end of a visit ends what was made in it, and nothing of the next", "[net]") {
  const auto worker = small_worker();
  Visit first = visit_of(1, 1, 1), second = visit_of(1, 1, 2);
  CHECK(tell(*worker, first, Method::register_share, {1, 1}).ok());
  first.end();
  CHECK(tell(*worker, second, Method::register_share, {1, 1}).ok());
  CHECK(tell(*worker, second, Method::register_share, {2, 1}).ok());
  CHECK(worker->status().num_sessions == 3);
  worker->forget(first, Status::unavailable("it has gone"));
  CHECK(worker->status().num_sessions == 2);
  second.end();
  worker->forget(second, Status::unavailable("it has gone"));
  CHECK(worker->status().num_sessions == 0);
}

TEST_CASE("tensors for steps that have not begun are forgotten with the client that has sent them", "[net]") {
  const auto steps = steps_without_source();
  const auto worker = small_worker(steps);
  Visit gone = visit_of(1), stays = visit_of(2);
  for (const std::uint64_t step : {5u, 6u}) push(*worker, gone, step);
  push(*worker, stays, 7);
  CHECK(steps->size() == 3);
  gone.end();
  worker->forget(gone, Status::unavailable("it has gone"));
  CHECK(steps->size() == 1);
  push(*worker, gone, 8);  // it was on its way when the client went
  CHECK(steps->size() == 1);
  worker->stop(Status::unavailable("it stops"));
  CHECK(steps->size() == 0);
}

TEST_CASE("tensors for steps that run are charged to the client until they are used up", "[net]") {
  const auto steps = steps_without_source();
  const auto worker = small_worker(steps);
  const auto budget = std::make_shared<ByteBudget>("client 1", 20'000);
  const Visit client = visit_of(1);
  const auto step = steps->begin(5, client.owner());
  Tensor<float> numbers(Shape({1'000}));
  std::fill_n(numbers.data(), 1'000, 2.0f);
  Tensor<std::string> texts(Shape({3}));
  texts(1) = std::string(4'000, 'a');
  push(*worker, client, 5, "numbers", numbers, budget);
  const std::uint64_t of_numbers = budget->used();
  CHECK(of_numbers >= 4'000);
  push(*worker, client, 5, "texts", texts, budget);
  CHECK(budget->used() >= of_numbers + 4'000);
  push(*worker, client, 5, "dead", AnyTensor(), budget);
  const std::uint64_t of_all = budget->used();
  CHECK(of_all > of_numbers + 4'000);
  const auto received = [&](const std::string& name) {
    AnyTensor got;
    bool is_got_dead = false;
    step->recv_async(key_from(client, name), {.pushed = true},
                     [&](const Status& status, AnyTensor tensor, bool is_dead) {
                       CHECK(status.ok());
                       got = std::move(tensor);
                       is_got_dead = is_dead;
                     });
    CHECK(is_got_dead == (name == "dead"));
    return got;
  };
  {
    const AnyTensor first = received("numbers");
    CHECK(first.span<float>()[999] == 2.0f);
    CHECK(first.buffer().is_unique());  // a kernel may use its memory again
    CHECK(budget->used() == of_all);
  }
  CHECK(budget->used() == of_all - of_numbers);
  CHECK(received("texts").span<std::string>()[1] == texts(1));
  received("dead");
  CHECK(budget->used() == 0);

  // Over the budget the step ends, and all of its tensors with it.
  for (int i = 0; i < 5; ++i) push(*worker, client, 5, str_cat("number ", i), numbers, budget);
  CHECK(step->end().code() == Code::resource_exhausted);
  CHECK(mentions(step->end(), "client 1"));
  CHECK(budget->used() == 0);
}

TEST_CASE("strings for steps are charged to the client before they are made", "[net]") {
  const auto steps = steps_without_source();
  const auto worker = small_worker(steps);
  const Visit client = visit_of(1);
  const Tensor<std::string> empty(Shape({3'000}));  // a byte each in the message
  Incoming request;
  request.method = static_cast<std::uint16_t>(Method::push_tensor);
  request.body = to_body(PushTensor{5, {key_from(client, "x").text(), false, empty}});
  CHECK(request.body.size() < 4'000);
  const auto code_within = [&](std::uint64_t bytes) {
    request.budget = std::make_shared<ByteBudget>("client 1", bytes);
    const auto step = steps->begin(5, client.owner());
    Responder nobody;
    static_cast<void>(worker->handle(client, request, nobody));
    return step->end().code();
  };
  CHECK(code_within(200'000) == Code::ok);
  request.body.back() = 1;  // the last one is cut short, which shows when they are made
  CHECK(code_of([&] { return code_within(200'000); }) == Code::data_loss);
  CHECK(code_within(20'000) == Code::resource_exhausted);
  CHECK(request.budget->used() == 0);
}

TEST_CASE("a client that is back keeps what it makes while the end of its last visit is still told", "[net]") {
  const auto transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(3));
  const auto listener = transport->listen("here");
  Peers::Options options;
  options.transport = transport;
  options.connection = test::options_of(here);
  const auto peers = std::make_shared<Peers>(std::move(options));
  const auto worker = small_worker();
  const auto service = std::make_shared<LateService>(worker);
  peers->set_service(service);
  const auto connect = [&] {
    test::Ends ends = test::connected(*transport, *listener);
    peers->accept(std::move(ends.far));
    test::Opening opening;
    Connection::open(std::move(ends.near), Role::connector, test::options_of("client"), std::make_shared<test::Owner>(),
                     opening.done());
    return opening.wait().second;
  };
  const auto registers = [](const std::shared_ptr<Connection>& connection, std::uint64_t session) {
    const auto no_partitions = std::make_shared<const std::byte>();
    Call call;
    call.method = static_cast<std::uint16_t>(Method::register_share);
    call.message.body = to_body(ShareName{session, 1});
    call.message.payload = {{std::span(no_partitions.get(), 1)}, no_partitions};
    test::Answered answered;
    connection->call(std::move(call), answered.done());
    return answered.wait().first.ok();
  };
  const auto first = connect();
  REQUIRE(first != nullptr);
  CHECK(registers(first, 1));
  first->close(Status::cancelled("done"));
  service->wait_until_gone();
  const auto second = connect();
  REQUIRE(second != nullptr);
  CHECK(registers(second, 2));
  service->tell();
  const TaskStatus status = worker->status();
  REQUIRE(status.sessions.size() == 1);
  CHECK(status.sessions[0].number == 2);
  second->close(Status::cancelled("done"));
  peers->close(Status::cancelled("done"));
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
  data_only->close(Status::cancelled("done"));
  its_data->close(Status::cancelled("done"));
  both->close(Status::cancelled("done"));
  CHECK(service->wait_for("both"));  // though there is a data connection
  CHECK_FALSE(service->has("bystander"));
  CHECK_FALSE(service->has("data only"));
  second->close(Status::cancelled("done"));
  CHECK(service->wait_for("data only"));
  bystander->close(Status::cancelled("done"));
  CHECK(service->wait_for("bystander"));
  const auto both_again = connect("both", Channel::control);
  both_data->close(Status::cancelled("done"));
  both_again->close(Status::cancelled("done"));
  CHECK(service->wait_for("both", 2));
  CHECK(service->count("data only") == 1);
  CHECK(service->count("bystander") == 1);
  peers->close(Status::cancelled("done"));
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
  peers->close(Status::cancelled("the task ends"));
  CHECK(lines.count("the task ends") == 99);  // "amid" took the place of one
}
