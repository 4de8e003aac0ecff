#include <dflow/session/session.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// Asynchronous: ends when the test says so.
struct Held : Op<"Held", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
/// Keeps its thread until the test lets it go.
struct Busy : Op<"Busy", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
/// Notes the thread that it runs on.
struct Marked : Op<"Marked", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
/// Its kernel is made when the test says so.
struct SlowToMake : Op<"SlowToMake", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto scheduling_ops = standard_ops + ops<Held, Busy, Marked, SlowToMake>;

/// The messages between one test and its kernels.
struct Scene {
  Scene() { current = this; }
  ~Scene() { current = nullptr; }
  static inline Scene* current = nullptr;

  std::vector<std::string> begun;  ///< by kernels of one thread
  std::promise<void> held_began, busy_began, busy_may_end, marked_ran, making, may_be_made;
  AsyncKernel::Done held;
  std::thread::id marked_on;
};

}  // namespace

template <>
struct dflow::Kernel<Held, Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    context.set_output(0, context.input(0));
    Scene::current->begun.push_back("held");
    Scene::current->held = std::move(done);
    Scene::current->held_began.set_value();
  }
};
template <>
struct dflow::Kernel<Busy, Cpu, float> {
  double cost_ns(const KernelInit&) const { return 1e9; }
  void operator()(KernelContext& context) const {
    context.set_output(0, context.input(0));
    Scene::current->busy_began.set_value();
    Scene::current->busy_may_end.get_future().wait();
  }
};
template <>
struct dflow::Kernel<Marked, Cpu, float> {
  double cost_ns(const KernelInit&) const { return 1e9; }
  void operator()(KernelContext& context) const {
    context.set_output(0, context.input(0));
    Scene::current->begun.push_back("marked");
    Scene::current->marked_on = std::this_thread::get_id();
    Scene::current->marked_ran.set_value();
  }
};
template <>
struct dflow::Kernel<SlowToMake, Cpu, float> {
  explicit Kernel(const KernelInit&) {
    Scene::current->making.set_value();
    Scene::current->may_be_made.get_future().wait();
  }
  void operator()(KernelContext& context) const { context.set_output(0, context.input(0)); }
};

TEST_CASE("a completion from outside finds a thread that has nothing to do, and does not run its readers itself",
          "[session][scheduling]") {
  for (const bool held_first : {true, false}) {
    Scene scene;
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    Output<float> held, busy;
    if (held_first) held = apply<Held>(x);
    busy = apply<Busy>(x);
    if (!held_first) held = apply<Held>(x);
    const auto after = apply<Marked>(held);
    Session session(graph, {.ops = scheduling_ops, .num_threads = 3, .inter_op = InterOp::parallel});
    std::thread runs([&] { CHECK(std::get<1>(session.run({{x, 2.0f}}, busy, after)).scalar() == 2); });
    scene.busy_began.get_future().wait();
    scene.held_began.get_future().wait();
    scene.held(Status());
    scene.marked_ran.get_future().wait();  // while another thread is kept
    CHECK(scene.marked_on != std::this_thread::get_id());
    scene.busy_may_end.set_value();
    runs.join();
  }
}

TEST_CASE("asynchronous nodes are started before what computes", "[session][scheduling]") {
  for (const bool held_first : {true, false}) {
    Scene scene;
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    Output<float> held, marked;
    if (held_first) held = apply<Held>(x);
    marked = apply<Marked>(x);
    if (!held_first) held = apply<Held>(x);
    Session session(graph, {.ops = scheduling_ops, .num_threads = 1, .inter_op = InterOp::parallel});
    std::thread runs([&] { session.run({{x, 2.0f}}, held, marked); });
    scene.held_began.get_future().wait();
    scene.marked_ran.get_future().wait();
    CHECK(scene.begun == std::vector<std::string>{"held", "marked"});
    scene.held(Status());
    runs.join();
  }
}

TEST_CASE("steps run and are compiled while another is being compiled", "[session][scheduling]") {
  Scene scene;
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto slow = apply<SlowToMake>(x), negated = -x, doubled = x + x;
  Session session(graph, {.ops = scheduling_ops, .num_threads = 2});
  auto prepared = session.prepare(feeds(x), fetches(negated));
  CHECK(session.run({{x, 1.0f}}, negated).scalar() == -1);
  std::thread compiles([&] { CHECK(session.run({{x, 5.0f}}, slow).scalar() == 5); });
  scene.making.get_future().wait();
  CHECK(prepared(2.0f).scalar() == -2);
  CHECK(session.run({{x, 3.0f}}, negated).scalar() == -3);
  CHECK(session.run({{x, 4.0f}}, doubled).scalar() == 8);
  scene.may_be_made.set_value();
  compiles.join();
}

TEST_CASE("a trace tells the time by the session's clock", "[session][scheduling]") {
  Scene scene;
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = -apply<Held>(x);
  const auto clock = std::make_shared<VirtualClock>(std::chrono::seconds(1'000));
  Session session(graph, {.ops = scheduling_ops, .num_threads = 2, .clock = clock});
  RunMetadata metadata;
  std::thread runs([&] { CHECK(session.run({.trace = true}, &metadata, {{x, 2.0f}}, y).scalar() == -2); });
  scene.held_began.get_future().wait();
  clock->advance(std::chrono::seconds(3));
  scene.held(Status());
  runs.join();
  CHECK(metadata.stats.wall_start_us == 1'000'000'000);
  CHECK(metadata.stats.total_ns == 3'000'000'000);
  for (const NodeStats& node : metadata.stats.nodes) {
    const bool is_held = node.op == "Held";
    CHECK(node.start_ns == (is_held ? 0 : 3'000'000'000));
    CHECK(node.end_ns == 3'000'000'000);
  }
}
