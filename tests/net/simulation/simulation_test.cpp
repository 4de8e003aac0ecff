#include <dflow/net/simulation/simulation.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/status.hpp>
#include <dflow/base/threads/pool_event.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/simulation/simulated_network.hpp>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::net;
using namespace std::chrono_literals;

namespace {

/// An op that runs in a pool, and says so.
struct PooledOp : Op<"PooledOp", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};

/// The hash of a run with many tasks of three processes; one process crashes.
std::uint64_t hash_of_busy_run(std::uint64_t seed, std::vector<int>& order) {
  Simulation simulation(seed);
  std::vector<std::shared_ptr<SimulatedProcess>> processes;
  for (int p = 0; p < 3; ++p) processes.push_back(simulation.start("p" + std::to_string(p)));
  for (int i = 0; i < 50; ++i) {
    const auto& process = processes[static_cast<std::size_t>(simulation.random_below(3))];
    process->pool()->schedule([&order, i] { order.push_back(i); });
    process->clock()->schedule_after(simulation.random_between(0ns, 100us), [&order, i] { order.push_back(100 + i); });
  }
  simulation.schedule_after(50us, [&] { processes[0]->crash(); });
  simulation.run_for(1s);
  return simulation.trace_hash();
}

}  // namespace

template <>
struct dflow::Kernel<PooledOp, Cpu, float> {
  static KernelCost cost(const KernelInit&) { return {.flops = 1e9, .bytes = 0}; }
  void operator()(KernelContext& context) const { context.set_output(0, context.input(0)); }
};

TEST_CASE("what happens in a simulation follows from its seed", "[net]") {
  std::vector<int> order[4];
  const std::uint64_t first = hash_of_busy_run(1, order[0]);
  CHECK(hash_of_busy_run(1, order[1]) == first);
  CHECK(hash_of_busy_run(1, order[2]) == first);
  CHECK(order[0] == order[1]);
  CHECK(order[0] == order[2]);
  CHECK(hash_of_busy_run(2, order[3]) != first);
  CHECK(order[3] != order[0]);
  CHECK(order[0].size() < 100);
}

TEST_CASE("events run in order of their time, then of their scheduling, and time jumps to them", "[net]") {
  Simulation simulation(1);
  const auto process = simulation.start("p");
  std::vector<std::pair<int, Duration>> ran;
  const auto note = [&](int i) { return [&, i] { ran.emplace_back(i, simulation.now().time_since_epoch()); }; };
  process->clock()->schedule_after(2h, note(4));
  process->clock()->schedule_after(1s, note(1));
  process->clock()->schedule_after(1s, note(2));
  simulation.schedule_after(1s, note(3));
  process->clock()->schedule_at(simulation.now() - 5s, note(0));
  CHECK(ran.empty());
  while (simulation.run_one()) {
  }
  CHECK(ran == std::vector<std::pair<int, Duration>>{{0, 0s}, {1, 1s}, {2, 1s}, {3, 1s}, {4, 2h}});
  CHECK(simulation.num_events() == 5);
  CHECK(process->clock()->wall_now().time_since_epoch() == 1'700'000'000s + 2h);
  CHECK_FALSE(simulation.run_one());
  simulation.run_for(1s);
  CHECK(simulation.now().time_since_epoch() == 2h + 1s);
}

TEST_CASE("a timer of a simulation is cancelled once, and never after it has run", "[net]") {
  Simulation simulation(1);
  const auto clock = simulation.start("p")->clock();
  int ran = 0;
  const TimerId first = clock->schedule_after(1s, [&] { ++ran; });
  const TimerId second = clock->schedule_after(1s, [&] { ran += 10; });
  CHECK(clock->cancel(first));
  CHECK_FALSE(clock->cancel(first));
  const TimerId third = clock->schedule_after(1s, [&] { ran += 100; });  // in the first timer's place
  CHECK_FALSE(clock->cancel(first));
  simulation.run_for(2s);
  CHECK(ran == 110);
  CHECK_FALSE(clock->cancel(second));
  CHECK_FALSE(clock->cancel(third));
  CHECK_FALSE(clock->cancel(TimerId{}));
}

TEST_CASE("a run ends when its condition holds, at its deadline, or when nothing can happen", "[net]") {
  Simulation simulation(1);
  int count = 0;
  for (int i = 1; i <= 3; ++i) simulation.schedule_after(std::chrono::seconds(i), [&] { ++count; });
  CHECK(simulation.run_until([&] { return count == 1; }, simulation.after(10s)));
  CHECK(simulation.now().time_since_epoch() == 1s);
  CHECK_FALSE(simulation.run_until([&] { return count == 3; }, simulation.after(1500ms)));
  CHECK(count == 2);
  CHECK_FALSE(simulation.run_until([&] { return count == 4; }, Clock::never));
  CHECK(count == 3);
  CHECK(simulation.run_until([] { return true; }, simulation.now()));
}

TEST_CASE("no event of a process happens after its crash, its pool is emptied at once, and what it held is let go",
          "[net]") {
  Simulation simulation(1, {.max_pool_delay = 1s});
  auto process = simulation.start("p");
  const auto other = simulation.start("q");
  const auto held = std::make_shared<int>(0);
  std::vector<int> ran;
  int hooks = 0;
  const auto note = [&](int i) { return [held, &ran, i] { ran.push_back(i); }; };
  process->clock()->schedule_after(1s, note(-1));
  process->schedule_after(1s, note(-1));
  process->pool()->schedule(note(1));
  process->pool()->schedule([&, second = note(2)]() mutable { process->pool()->schedule(std::move(second)); });
  process->on_crash([held, &hooks] { ++hooks; });
  other->clock()->schedule_after(1s, note(4));
  CHECK(process->is_alive());
  for (int i = 0; i < 3; ++i) process->crash();
  CHECK_FALSE(process->is_alive());
  CHECK(hooks == 1);
  process->clock()->schedule_after(1s, note(-1));
  process->schedule_after(1s, note(-1));
  process->on_crash([held, &hooks] { ++hooks; });
  process->pool()->schedule(note(3));
  CHECK(ran.empty());
  simulation.run_for(0s);
  CHECK(ran == std::vector<int>{1, 3, 2});
  simulation.run_for(2s);
  CHECK(ran == std::vector<int>{1, 3, 2, 4});
  CHECK(hooks == 1);
  process = simulation.start("p");
  process->pool()->schedule(note(5));
  simulation.run_for(1s);
  CHECK(ran.back() == 5);
}

TEST_CASE("what a process schedules after its crash is destroyed outside of the call", "[net]") {
  Simulation simulation(1);
  const auto process = simulation.start("p");
  process->crash();
  bool is_calling = true, was_inside = false, is_gone = false;
  struct Last {
    bool& is_calling;
    bool& was_inside;
    bool& is_gone;
    ~Last() {
      was_inside = is_calling;
      is_gone = true;
    }
  };
  auto last = std::make_shared<Last>(is_calling, was_inside, is_gone);
  process->clock()->schedule_after(1s, [last = std::move(last)] {});
  CHECK_FALSE(is_gone);
  is_calling = false;
  simulation.run_for(0s);
  CHECK(is_gone);
  CHECK_FALSE(was_inside);
}

TEST_CASE("a wait in a pool lets the simulation go on, and waits inside of waits end", "[net]") {
  Simulation simulation(1);
  const auto process = simulation.start("p"), other = simulation.start("q");
  std::vector<std::string> order;
  PoolEvent outer, inner;
  process->pool()->schedule([&] {
    CHECK(process->pool()->current_thread_is_worker());
    process->pool()->wait(outer);
    CHECK(process->pool()->current_thread_is_worker());
    order.push_back("outer");
  });
  other->clock()->schedule_after(1s, [&] {
    CHECK_FALSE(process->pool()->current_thread_is_worker());
    other->pool()->wait(inner);
    order.push_back("inner");
  });
  process->clock()->schedule_after(2s, [&] { outer.set(); });
  other->clock()->schedule_after(3s, [&] { inner.set(); });
  CHECK(simulation.run_until([&] { return order.size() == 2; }, simulation.after(10s)));
  CHECK(order == std::vector<std::string>{"inner", "outer"});
  CHECK_FALSE(process->pool()->current_thread_is_worker());
}

TEST_CASE("a wait ends with an error where its process crashes, time is over, or nothing is left", "[net]") {
  Simulation simulation(1);
  const auto process = simulation.start("p");
  std::vector<Code> codes;
  const auto wait = [&] {
    PoolEvent never;
    codes.push_back(code_of([&] { process->pool()->wait(never); }));
  };
  wait();
  process->pool()->schedule(wait);
  simulation.schedule_after(20s, [] {});
  CHECK_FALSE(simulation.run_until([] { return false; }, simulation.after(10s)));
  process->pool()->schedule(wait);
  simulation.schedule_after(5s, [&] { process->crash(); });
  CHECK_FALSE(simulation.run_until([] { return false; }, simulation.after(10s)));
  CHECK(codes == std::vector<Code>{Code::internal, Code::deadline_exceeded, Code::cancelled});
}

TEST_CASE("random numbers of a simulation keep to their bounds", "[net]") {
  Simulation simulation(7);
  std::set<std::uint64_t> below;
  for (int i = 0; i < 1000; ++i) {
    below.insert(simulation.random_below(3));
    const Duration between = simulation.random_between(5ns, 7ns);
    CHECK((between >= 5ns && between <= 7ns));
  }
  CHECK(below == std::set<std::uint64_t>{0, 1, 2});
  CHECK(simulation.random_below(1) == 0);
  CHECK(simulation.random_between(3s, 3s) == 3s);
  CHECK_FALSE(simulation.chance(0));
  CHECK(simulation.chance(1));
  CHECK(simulation.seed() == 7);
  CHECK(code_of([] { return Simulation(1, {.num_threads = 0}).now(); }) == Code::invalid_argument);
}

TEST_CASE("a simulation that ends with a step in a pool lets go of it", "[net]") {
  const auto held = std::make_shared<int>(0);
  for (int num_events = 0; num_events < 10; ++num_events) {
    Simulation simulation(1);
    const auto process = simulation.start("p");
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    const auto y = apply<PooledOp>(x) + apply<PooledOp>(x) + apply<PooledOp>(x);
    SessionOptions options;
    options.ops = standard_ops + ops<PooledOp>;
    options.pool = options.callbacks = process->pool();
    options.clock = process->clock();
    options.incarnation = 1;
    Session session(graph, options);
    session.run_async({{x, Tensor<float>(1.0f)}}, y, [held](const Status&, const Tensor<float>&) {});
    for (int i = 0; i < num_events; ++i) simulation.run_one();
  }
  CHECK(held.use_count() == 1);
}

// A leak sanitizer tells whether all is released.
TEST_CASE("a simulation that ends with steps of a cluster under way lets go of them", "[net]") {
  const auto held = std::make_shared<int>(0);
  for (int num_events = 0; num_events < 40; ++num_events) {
    Simulation simulation(1);
    SimulatedNetwork network(simulation);
    const auto ps = simulation.start("ps0"), worker = simulation.start("worker0");
    const auto server_of = [&](const std::string& job, const std::shared_ptr<SimulatedProcess>& process) {
      ClusterSpec spec;
      spec.add_task("ps", 0, "ps0");
      spec.add_task("worker", 0, "worker0");
      spec.set_task(job, 0);
      ServerOptions options;
      options.pool = process->pool();
      options.clock = process->clock();
      options.transport = network.transport(process);
      options.random = options.draw_seed = [&simulation] { return simulation.random(); };
      options.log = [](std::string_view) {};
      return std::make_unique<Server>(spec, options);
    };
    const auto ps_server = server_of("ps", ps), server = server_of("worker", worker);
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    const auto y = [&] {
      const auto on = graph.device("/job:ps/task:0");
      return x * 2.0f;
    }();
    SessionOptions options;
    options.target = server->target();
    options.clock = worker->clock();
    options.callbacks = worker->pool();
    options.incarnation = 1;
    Session session(graph, options);
    session.run_async({{x, Tensor<float>(1.0f)}}, y, [held](const Status&, const Tensor<float>&) {});
    for (int i = 0; i < num_events; ++i) simulation.run_one();
  }
  CHECK(held.use_count() == 1);
}

TEST_CASE("a simulation that ends lets go of everything", "[net]") {
  const auto held = std::make_shared<int>(0);
  {
    Simulation simulation(1);
    const auto process = simulation.start("p");
    simulation.schedule_after(1s, [held] {});
    // An object that schedules more work when it is destroyed.
    struct Again {
      std::shared_ptr<SimulatedProcess> process;
      std::shared_ptr<int> held;
      ~Again() {
        process->pool()->schedule([held = held] {});
      }
    };
    process->pool()->schedule([again = std::make_shared<Again>(process, held)] {});
  }
  CHECK(held.use_count() == 1);
}
