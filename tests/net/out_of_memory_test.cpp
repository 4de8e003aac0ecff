// Every allocation of a thread that runs a whole cluster fails in turn: no caller waits for ever, and nothing breaks.
#include <dflow/net/server.hpp>

#include "catch.hpp"
#include "support/failing_new.hpp"
#include "support/sanitized.hpp"

#include <dflow/dflow.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/tasks/step_table.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

using namespace dflow;

namespace {

/// Runs its tasks in the waiting thread. If there is no task, the waiting thread moves time on.
class WaitersPool final : public ThreadPool {
 public:
  explicit WaitersPool(std::shared_ptr<VirtualClock> clock) : clock_(std::move(clock)) {}

  int num_threads() const noexcept override { return 1; }
  void schedule(Task task) override { tasks_.push_back(std::move(task)); }
  bool run_one() override {
    if (tasks_.empty()) return false;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    [&]() noexcept { task(); }();
    return true;
  }
  void wait(PoolEvent& event) override {
    const Clock::time_point end = clock_->after(std::chrono::minutes(2));
    while (!event.is_set()) {
      if (run_one()) continue;
      if (clock_->now() >= end) {
        if (std::exchange(has_given_up, true)) throw_error(Status::internal("somebody waits for ever"));
        stop.request_stop();
      }
      [&]() noexcept { clock_->advance_to_next(); }();
    }
    event.wait_blocking();
  }
  bool current_thread_is_worker() const noexcept override { return true; }

  bool has_given_up = false;
  std::stop_source stop;  ///< stops a step that would wait for ever

 private:
  const std::shared_ptr<VirtualClock> clock_;
  std::deque<Task> tasks_;
};

/// "ps=1 worker=1" in one thread, and a graph over both.
struct ClusterInOneThread {
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  std::shared_ptr<WaitersPool> pool = std::make_shared<WaitersPool>(clock);
  net::ClusterSpec spec;
  std::shared_ptr<net::MemoryTransport> transport = std::make_shared<net::MemoryTransport>(pool);
  std::shared_ptr<std::uint64_t> drawn = std::make_shared<std::uint64_t>(7);
  std::unique_ptr<net::Server> ps, worker;
  Graph graph;
  Output<float> x, y;
  Tensor<float> value = Tensor<float>::full({2}, 1);

  net::ServerOptions options() const {
    net::ServerOptions options;
    options.pool = pool;
    options.callbacks = pool;  // the log has no thread of its own, whose memory is freed at any time
    options.clock = clock;
    options.transport = transport;
    options.log = [](std::string_view) {};
    options.random = [drawn = drawn] { return *drawn = *drawn * 6364136223846793005u + 1442695040888963407u; };
    return options;
  }

  ClusterInOneThread() {
    spec.add_task("ps", 0, "ps");
    spec.add_task("worker", 0, "worker");
    const auto start = [&](const std::string& job) {
      net::ClusterSpec own = spec;
      own.set_task(job, 0);
      return std::make_unique<net::Server>(own, options());
    };
    ps = start("ps");
    worker = start("worker");
    const auto there = graph.device("/job:ps");
    x = placeholder<float>(graph, {2});
    y = x + x;
  }

  /// The tasks still to be run hold the objects to be released.
  ~ClusterInOneThread() {
    ps.reset();
    worker.reset();
    while (pool->run_one()) continue;
  }

  std::unique_ptr<Session> session() {
    return std::make_unique<Session>(graph, SessionOptions{.pool = pool, .target = worker->target(), .clock = clock});
  }
  /// The session of a client that leaves all to the worker's master.
  std::unique_ptr<Session> session_at_master() {
    const auto target = net::remote_master(spec, "/job:worker/task:0", {}, options());
    return std::make_unique<Session>(graph, SessionOptions{.pool = pool, .target = target, .clock = clock});
  }
  void run(Session& session) {
    Tensor<float> doubled;
    std::vector<AnyTensor> results(1);
    session.run_erased({.stop = pool->stop.get_token()}, nullptr, std::vector<Feed>{{x, value}},
                       std::vector<AnyOutput>{y}, {}, results);
  }
};

/// `before(cluster)` makes the argument of `operation(cluster, session)`. Each allocation of the operation fails in
/// turn. Whatever becomes of the operation, it ends by itself. Cluster and session can be used afterwards, and nothing
/// is kept.
template <class Before, class Operation>
int fail_each_in_cluster(const Before& before, const Operation& operation) {
  // True if allocation `n` was there to fail.
  const auto fail = [&](int n) {
    ClusterInOneThread cluster;
    std::unique_ptr<Session> session = before(cluster);
    failing_new::fails_in = n;
    try {
      operation(cluster, session);
    } catch (const std::bad_alloc&) {
    } catch (const Error&) {
    }
    const bool has_failed = failing_new::fails_in == 0;
    failing_new::fails_in = 0;
    REQUIRE_FALSE(cluster.pool->has_given_up);
    const auto later = [&](Session* with) -> Status {
      try {
        cluster.run(with != nullptr ? *with : *cluster.session());
        return {};
      } catch (const Error& error) {
        return error.status();
      }
    };
    for (Session* const with : {session.get(), static_cast<Session*>(nullptr)}) {
      Status status;
      for (int i = 0; i < 2 && (i == 0 || !status.ok()); ++i) status = later(with);
      INFO(status.to_string());
      REQUIRE(status == Status());
    }
    return has_failed;
  };
  fail(0);
  for (int n = 1;; n += dflow::testing::is_sanitized ? 3 : 1) {
    INFO("allocation " << n);
    const long live = failing_new::num_live_here;
    const bool has_failed = fail(n);
    REQUIRE(failing_new::num_live_here == live);
    if (!has_failed) return n - 1;
  }
}

}  // namespace

TEST_CASE("without memory a step on a cluster ends all the same", "[out_of_memory]") {
  const auto make = [](ClusterInOneThread& cluster) { return cluster.session(); };
  const auto make_and_run = [](ClusterInOneThread& cluster) {
    auto session = cluster.session();
    cluster.run(*session);
    return session;
  };
  const auto run = [](ClusterInOneThread& cluster, std::unique_ptr<Session>& session) { cluster.run(*session); };
  CHECK(fail_each_in_cluster(make, run) > 100);
  CHECK(fail_each_in_cluster(make_and_run, run) > 50);
}

TEST_CASE("without memory a step of a remote master ends all the same, and its session goes on", "[out_of_memory]") {
  const auto run = [](ClusterInOneThread& cluster, std::unique_ptr<Session>& session) { cluster.run(*session); };
  const auto make = [](ClusterInOneThread& cluster) { return cluster.session_at_master(); };
  CHECK(fail_each_in_cluster(make, run) > 100);
  const auto make_run_and_grow = [](ClusterInOneThread& cluster) {
    auto session = cluster.session_at_master();
    cluster.run(*session);
    cluster.y = cluster.y + cluster.x;
    return session;
  };
  CHECK(fail_each_in_cluster(make_run_and_grow, run) > 50);
}

TEST_CASE("without memory a session on a cluster is let go of all the same", "[out_of_memory]") {
  const auto make_and_run = [](ClusterInOneThread& cluster) {
    auto session = cluster.session();
    cluster.run(*session);
    return session;
  };
  CHECK(fail_each_in_cluster(make_and_run,
                             [](ClusterInOneThread&, std::unique_ptr<Session>& session) { session.reset(); }) > 5);
}

TEST_CASE("without memory a table of steps keeps no half of a step", "[out_of_memory]") {
  struct Nobody final : net::TensorSource {
    void receive(const std::string&, std::uint64_t, const RendezvousKey&, const RecvArgs&, CancellationToken,
                 Rendezvous::RecvDone) override {}
    void push(const std::string&, std::uint64_t, const RendezvousKey&, const AnyTensor&, bool, UniqueFunction<bool()>,
              UniqueFunction<void(Status)>) override {}
  };
  const RendezvousKey key("/job:ps/replica:0/task:0/device:CPU:0", 1, "/job:worker/replica:0/task:0/device:CPU:0", "t");
  const AnyTensor tensor = Tensor<float>::full({2}, 1);
  CHECK(failing_new::fail_each([&] {
          const auto steps = std::make_shared<net::StepTable>(
              net::StepTable::Options{.task = "/job:ps/replica:0/task:0", .source = std::make_shared<Nobody>()});
          const auto attempt = [](const auto& f) {
            try {
              f();
              return true;
            } catch (const std::bad_alloc&) {
              return false;
            }
          };
          bool all = attempt([&] { static_cast<void>(steps->begin(1, "somebody")); });
          std::shared_ptr<net::StepRendezvous> begun;
          all &= attempt([&] { begun = steps->begin(2, "somebody"); });
          all &= attempt([&] { steps->serve(2, key, {}, [](const Status&, const AnyTensor&, bool) {}); });
          all &= attempt([&] { static_cast<void>(steps->take(3, "sender", key, tensor, false)); });
          all &= attempt([&] { static_cast<void>(steps->waits(100)); });
          all &= attempt([&] { steps->cancel(2, Status::cancelled("no more")); });
          begun = nullptr;
          const auto end_all = [&] { steps->cancel_all(Status::cancelled("no more")); };
          if (!attempt(end_all)) {
            all = false;
            end_all();
          }
          if (steps->size() != 0) FAIL("steps that are over are kept");
          if (!all) throw std::bad_alloc();
        }) > 10);
}

TEST_CASE("without memory a step that has failed is forgotten all the same", "[out_of_memory]") {
  struct Nobody final : net::TensorSource {
    void receive(const std::string&, std::uint64_t, const RendezvousKey&, const RecvArgs&, CancellationToken,
                 Rendezvous::RecvDone) override {}
    void push(const std::string&, std::uint64_t, const RendezvousKey&, const AnyTensor&, bool, UniqueFunction<bool()>,
              UniqueFunction<void(Status)>) override {}
  };
  const auto source = std::make_shared<Nobody>();
  for (int n = 1; n < 20; ++n) {
    const auto steps =
        std::make_shared<net::StepTable>(net::StepTable::Options{.task = "/job:ps/replica:0/task:0", .source = source});
    std::shared_ptr<net::StepRendezvous> begun = steps->begin(1, "somebody");
    begun->abort(
        Status::internal("what has gone wrong in a step, in so many words that they take memory of their own"));
    failing_new::fails_in = n;
    begun = nullptr;
    failing_new::fails_in = 0;
    CHECK(steps->size() == 0);
  }
}

TEST_CASE("without memory a server stops all the same, and those who wait for that go on", "[out_of_memory]") {
  for (int n = 1; n < 30; ++n) {
    ClusterInOneThread cluster;
    failing_new::fails_in = n;
    cluster.ps->stop();
    failing_new::fails_in = 0;
    cluster.ps->stop();
    CHECK(cluster.ps->join() == 0);
  }
}
