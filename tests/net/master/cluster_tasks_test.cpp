#include <dflow/net/master/cluster_tasks.hpp>

#include <dflow/dflow.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include "../protocol/connection_harness.hpp"
#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

const std::string scripted_task = "/job:ps/replica:0/task:0";

ConnectionOptions scripted_options() {
  ConnectionOptions options;
  options.self = {{}, scripted_task, 77, ServerOptions().ops.ops().fingerprint()};
  options.clock = std::make_shared<RealClock>();
  options.random = test::random_number;
  return options;
}

/// A task that says which devices it has, and answers everything else when the test does.
class ScriptedTask final : public Connection::Handler {
 public:
  void on_request(const std::shared_ptr<Connection>& connection, Incoming request, Responder respond) override {
    if (static_cast<Method>(request.method) == Method::list_devices) {
      DeviceList list;
      DeviceInfo& device = list.devices.emplace_back();
      device.name = scripted_task + "/device:CPU:0";
      device.type = "CPU";
      device.incarnation = 77;
      return respond(Outgoing{to_body(list), {}});
    }
    const std::lock_guard lock(mutex_);
    asked_.push_back({connection.get(), static_cast<Method>(request.method), std::move(respond)});
    changed_.notify_all();
  }
  void on_closed(Connection&, const Status&) override {}

  /// The next request for that over that connection; none if it does not come.
  std::optional<Responder> asked(const std::shared_ptr<Connection>& connection, Method method) {
    std::unique_lock lock(mutex_);
    auto found = asked_.end();
    const auto has_come = [&] {
      found = std::find_if(asked_.begin(), asked_.end(), [&](const Asked& each) {
        return each.connection == connection.get() && each.method == method;
      });
      return found != asked_.end();
    };
    if (!changed_.wait_for(lock, test::patience, has_come)) return std::nullopt;
    Responder respond = std::move(found->respond);
    asked_.erase(found);
    return respond;
  }

 private:
  struct Asked {
    const Connection* connection;
    Method method;
    Responder respond;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Asked> asked_;
};

}  // namespace

TEST_CASE("a run that waits for its share over a new connection is not told how it went over the one before", "[net]") {
  ServerOptions options;
  const auto transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(3));
  options.transport = transport;
  options.num_threads = 1;
  options.log = [](std::string_view) {};
  ClusterSpec spec;
  spec.add_task("ps", 0, "ps0");
  spec.add_task("worker", 0, "worker0");
  spec.set_task("worker", 0);
  const auto task = std::make_shared<ScriptedTask>();
  const auto listener = transport->listen("ps0");
  std::unique_ptr<Stream> stream;
  test::Opening accepted;
  listener->accept(stream, [&, opened = accepted.done()](const Status& status) mutable {
    if (status.ok()) Connection::open(std::move(stream), Role::acceptor, scripted_options(), task, std::move(opened));
  });
  Server worker(spec, options);
  Graph graph;
  const Operation init = [&] {
    const auto on = graph.device("/job:ps/task:0");
    const Variable<float> w(graph, Tensor<float>(0.0f));
    return initialize_variables(graph);
  }();
  Session session(graph, {.target = worker.target()});
  const auto begin = [&] {
    auto promise = std::make_shared<std::promise<Status>>();
    session.run_async(init, [promise](Status status) { promise->set_value(std::move(status)); });
    return promise->get_future();
  };
  const std::shared_ptr<Connection> old = accepted.wait().second;
  REQUIRE(old != nullptr);
  auto first = begin();
  const std::optional<Responder> pending = task->asked(old, Method::register_share);
  REQUIRE(pending);
  // The task opens one too, which is used from now on.
  std::unique_ptr<Stream> own_stream;
  REQUIRE(test::connect(*transport, "worker0", own_stream).ok());
  test::Opening opening;
  Connection::open(std::move(own_stream), Role::connector, scripted_options(), task, opening.done());
  const std::shared_ptr<Connection> latest = opening.wait().second;
  REQUIRE(latest != nullptr);
  Call hello;
  hello.method = static_cast<std::uint16_t>(Method::list_devices);
  test::Answered answered;
  latest->call(std::move(hello), answered.done());
  REQUIRE(answered.wait().first.ok());
  auto second = begin();
  std::optional<Responder> registers = task->asked(latest, Method::register_share);
  REQUIRE(registers);
  old->close(Status::unavailable("it is lost"));
  CHECK(first.get().code() == Code::unavailable);
  (*registers)(Outgoing());
  std::optional<Responder> runs = task->asked(latest, Method::run_share);
  CHECK(runs);
  if (runs) (*runs)(Outgoing{to_body(RunShareReply()), {}});
  const Status status = second.get();
  INFO(status.to_string());
  CHECK(status.ok());
  worker.stop();
  latest->close(Status::cancelled("the test is over"));
}

TEST_CASE("a step is not sent to a task that is far behind with the ends of others", "[net]") {
  ServerOptions options;
  const auto transport = std::make_shared<MemoryTransport>(std::make_shared<WorkStealingPool>(3));
  options.transport = transport;
  options.num_threads = 1;
  options.log = [](std::string_view) {};
  ClusterSpec spec;
  spec.add_task("ps", 0, "ps0");
  const auto task = std::make_shared<ScriptedTask>();
  const auto listener = transport->listen("ps0");
  std::unique_ptr<Stream> stream;
  test::Opening accepted;
  listener->accept(stream, [&, opened = accepted.done()](const Status& status) mutable {
    if (status.ok()) Connection::open(std::move(stream), Role::acceptor, scripted_options(), task, std::move(opened));
  });
  Graph graph;
  const Operation init = [&] {
    const auto on = graph.device("/job:ps/task:0");
    const Variable<float> w(graph, Tensor<float>(0.0f));
    return initialize_variables(graph);
  }();
  Session session(graph, {.target = connect(spec, options)});
  const std::shared_ptr<Connection> connection = accepted.wait().second;
  REQUIRE(connection != nullptr);
  struct Step {
    std::stop_source stop;
    std::promise<Status> ended;
  };
  const auto begin = [&] {
    auto step = std::make_shared<Step>();
    session.run_async(RunOptions{.stop = step->stop.get_token()}, {}, init,
                      [step](Status status) { step->ended.set_value(std::move(status)); });
    return step;
  };
  const auto end = [](Step& step) {
    step.stop.request_stop();
    CHECK(step.ended.get_future().get().code() == Code::cancelled);
  };
  // The task reads, and answers no more than it must.
  std::vector<Responder> runs, cancels;
  for (int i = 0; i < 4096; ++i) {
    const auto step = begin();
    if (i == 0) (*task->asked(connection, Method::register_share))(Outgoing());
    std::optional<Responder> run = task->asked(connection, Method::run_share);
    REQUIRE(run);
    runs.push_back(std::move(*run));
    end(*step);
    std::optional<Responder> cancel = task->asked(connection, Method::cancel_step);
    REQUIRE(cancel);
    cancels.push_back(std::move(*cancel));
  }
  end(*begin());  // the task never hears of this one
  for (Responder& cancel : cancels) cancel(Outgoing());
  const auto last = begin();
  std::future<Status> ended = last->ended.get_future();
  int num_asked = 0;
  do {
    std::optional<Responder> run = task->asked(connection, Method::run_share);
    REQUIRE(run);
    (*run)(Outgoing{to_body(RunShareReply()), {}});
    ++num_asked;
  } while (ended.wait_for(test::patience) != std::future_status::ready);
  CHECK(num_asked == 1);
  CHECK(ended.get().ok());
  for (Responder& each : runs) each(Outgoing{to_body(RunShareReply()), {}});
  connection->close(Status::cancelled("the test is over"));
}
