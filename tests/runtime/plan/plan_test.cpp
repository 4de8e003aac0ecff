#include <dflow/runtime/plan/plan.hpp>

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/step.hpp>

#include "catch.hpp"
#include "runtime/planned.hpp"

#include <future>
#include <memory>
#include <optional>
#include <vector>

using namespace dflow;
using dflow::testing::Planned;

namespace {

/// Ends when the test says so.
struct Held : Op<"Held", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
/// Counts its runs.
struct Noted : Op<"Noted", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto plan_ops = standard_ops + ops<Held, Noted>;

AsyncKernel::Done held;
int num_noted = 0;

/// A unit that becomes ready runs in the thread that made it ready.
Planned planned_here() { return {plan_ops, std::make_shared<InlinePool>()}; }

/// A run: each unit runs in the thread that makes it ready.
struct Running {
  Running(Planned& planned, std::shared_ptr<const Plan> plan) : step(std::make_shared<Step>(std::move(plan))) {
    step->set_on_fetch([this](std::size_t fetch) { made.push_back(fetch); });
    step->start(planned.queue, [this](const Status& status) { outcome = status; });
  }
  bool has_made(std::size_t fetch) const { return std::find(made.begin(), made.end(), fetch) != made.end(); }

  std::vector<std::size_t> made;
  std::optional<Status> outcome;
  std::shared_ptr<Step> step;
};

}  // namespace

template <>
struct dflow::Kernel<Held, Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    context.set_output(0, context.input(0));
    held = std::move(done);
  }
};
template <>
struct dflow::Kernel<Noted, Cpu, float> {
  void operator()(KernelContext& context) const {
    ++num_noted;
    context.set_output(0, context.input(0));
  }
};

TEST_CASE("a fetch that is taken as soon as it is made is still there for those that read it later",
          "[runtime][plan]") {
  Graph graph;
  const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
  const auto y = a + 1.0f, z = y * b, w = a * b;
  Planned planned = planned_here();
  const auto plan = planned.plan(graph, {a, b}, {y, z, w, a, y, w}, true);
  CHECK(!plan->may_take_fetch(0));  // z reads it
  CHECK(plan->may_take_fetch(1));
  CHECK(!plan->may_take_fetch(2));  // fetched again
  CHECK(!plan->may_take_fetch(3));  // w reads it
  CHECK(!plan->may_take_fetch(5));
  for (int round = 0; round < 3; ++round) {
    Running run(planned, plan);
    run.step->feed_late(0, Tensor<float>(1.0f));
    REQUIRE(run.has_made(0));
    CHECK(run.step->take_fetch(0).span<float>()[0] == 2);
    CHECK(run.step->take_fetch(4).span<float>()[0] == 2);
    CHECK(run.step->take_fetch(3).span<float>()[0] == 1);
    run.step->feed_late(1, Tensor<float>(10.0f));
    REQUIRE((run.outcome.has_value() && run.outcome->ok()));
    CHECK(run.step->take_fetch(1).span<float>()[0] == 20);
    CHECK(run.step->take_fetch(5).span<float>()[0] == 10);
    CHECK(run.step->take_fetch(2).span<float>()[0] == 10);
    run.step->reset(false);
    CHECK(!run.step->fetch(0).is_initialized());
  }
}

TEST_CASE("who waits for a constant waits for the constant's control inputs", "[runtime][plan]") {
  enum class By { input, control, chain, fetch, other_fed };
  for (const By by : {By::input, By::control, By::chain, By::fetch, By::other_fed}) {
    INFO("case " << static_cast<int>(by));
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    const auto first = apply<Held>(x);
    Output<float> token, last;
    {
      const auto after = graph.control_dependencies({first.operation()});
      token = constant(graph, 3.0f);
    }
    if (by == By::input) last = apply<Noted>(token);
    if (by == By::control || by == By::chain || by == By::other_fed) {
      const auto after = graph.control_dependencies({token.operation()});
      if (by == By::chain) token = constant(graph, 4.0f);
      if (by != By::chain) last = apply<Noted>(x);
    }
    if (by == By::chain) last = apply<Noted>(token);
    if (by == By::fetch) last = token;
    Planned planned = planned_here();
    std::vector<AnyOutput> feeds{x};
    if (by == By::other_fed) feeds.push_back(token);  // only a node that waits for `token`'s node waits
    const auto plan = planned.plan(graph, feeds, {last}, true);
    num_noted = 0;
    Running run(planned, plan);
    run.step->feed_late(0, Tensor<float>(5.0f));
    if (by == By::other_fed) run.step->feed_late(1, Tensor<float>(6.0f));
    REQUIRE(held);
    CHECK(num_noted == 0);
    CHECK(!run.has_made(0));
    CHECK(!run.outcome.has_value());
    std::exchange(held, nullptr)(Status());
    REQUIRE((run.outcome.has_value() && run.outcome->ok()));
    CHECK(run.has_made(0));
    CHECK(num_noted == (by == By::fetch ? 0 : 1));
    const float expected = by == By::chain ? 4 : by == By::control || by == By::other_fed ? 5 : 3;
    CHECK(run.step->fetch(0).span<float>()[0] == expected);
  }
}

TEST_CASE("a constant that is built after nothing that runs has no kernel", "[runtime][plan]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  Output<float> y;
  {
    const auto after = graph.control_dependencies({x.operation(), constant(graph, 2.0f).operation()});
    y = x + constant(graph, 1.0f);
  }
  Planned planned = planned_here();
  CHECK(planned.plan(graph, {x}, {y})->nodes().size() == 1);
}
