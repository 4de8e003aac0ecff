// The raw form of control flow as calls: over several devices, and on request.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <future>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

using namespace dflow;
namespace raw = dflow::frames;

namespace {

Output<float> on_second_device(Graph& graph, const auto& build_it) {
  const auto on = graph.device("/cpu:1");
  return Output<float>(build_it());
}

struct RaisedCounting {
  raw::Merged<std::int32_t> i;
  Output<bool> goes_on;
  Output<std::int32_t> last, now;
};
RaisedCounting raised_counting(Graph& graph, Output<std::int32_t> limit, const std::string& frame) {
  auto i = raw::merge({raw::enter(constant(graph, 0), frame)});
  auto goes_on = raw::loop_cond(i.value < raw::enter(limit, frame, {.is_constant = true}));
  auto [last, now] = raw::switch_on(i.value, goes_on);
  return {i, goes_on, last, now};
}

}  // namespace

TEST_CASE("a raw branch on two devices joins its sides, and what does not have its form is refused, by name",
          "[frames][split]") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  auto p = placeholder<bool>(graph, {});
  auto [no, yes] = raw::switch_on(x, p);
  auto far = on_second_device(graph, [&] { return yes * 2.0f; });
  auto merged = raw::merge({no, far});
  auto three = raw::merge({no, far, Output<float>(yes + 1.0f)}).value;
  for (const int threads : {1, 3}) {
    Session session(graph, {.num_threads = threads, .num_cpu_devices = 2});
    for (const bool side : {false, true}) {
      const auto run = [&](const auto& of) { return session.run({{x, 3.0f}, {p, side}}, of).scalar(); };
      CHECK(run(merged.value) == (side ? 6.0f : 3.0f));
      CHECK(run(merged.index) == (side ? 1 : 0));
      // A value that is not joined is on its device. It is dead if its side is not taken.
      for (const auto& behind : {far, Output<float>(far - 0.5f)}) {
        const Code code = code_of([&] { run(behind); });
        CHECK(code == (side ? Code::ok : Code::invalid_argument));
      }
      const Status status = status_of([&] { run(three); });
      CHECK(status.code() == Code::unimplemented);
      CHECK(mentions(status, "Mul"));
    }
  }
}

TEST_CASE("a side of a raw branch on two devices may have effects alone", "[frames][split]") {
  Graph graph;
  auto p = placeholder<bool>(graph, {});
  auto w = [&] {
    const auto on = graph.device("/cpu:1");
    return Variable<float>(graph, constant(graph, 1.0f));
  }();
  auto by = std::get<1>(raw::switch_on(constant(graph, 10.0f), p));
  const Operation bump(w.assign_add(by));
  for (const bool raises : {false, true}) {
    PassOptions passes;
    passes.raise_control_flow = raises;
    Session session(graph, {.num_cpu_devices = 2, .passes = passes});
    session.run(w.initializer());
    for (const bool side : {false, true, true, false}) session.run({{p, side}}, bump);
    CHECK(session.run(w).scalar() == 21.0f);
  }
}

TEST_CASE("a raw loop updates a variable of another device once in each iteration", "[frames][split]") {
  Graph graph;
  auto n = placeholder<std::int32_t>(graph, {});
  auto total = [&] {
    const auto on = graph.device("/cpu:1");
    return Variable<float>(graph, constant(graph, 0.0f));
  }();
  RaisedCounting loop = raised_counting(graph, n, "loop");
  const auto handle = build<Enter>({total.handle()}, {"loop", true, 10}).output(0);
  const auto added = build<AssignAdd>(std::vector<AnyOutput>{handle, cast<float>(loop.now)}).operation();
  const auto next = [&] {
    const auto after = graph.control_dependencies({Operation(added)});
    return loop.now + 1;
  }();
  raw::next_iteration(next, loop.i);
  const auto count = raw::exit(loop.last);
  for (const int threads : {1, 3}) {
    Session session(graph, {.num_threads = threads, .num_cpu_devices = 2});
    session.run(total.initializer());
    for (const int of : {5, 0, 1, 100}) CHECK(session.run({{n, of}}, count).scalar() == of);
    CHECK(session.run(total).scalar() == 10.0f + 4950.0f);
  }
}

TEST_CASE("what the condition of a raw loop has computed its body reads too, unless it has effects",
          "[frames][split]") {
  for (const bool has_effects : {false, true}) {
    Graph graph({.seed = 1});
    auto n = placeholder<std::int32_t>(graph, {});
    auto i = raw::merge({raw::enter(constant(graph, 0), "f")});
    auto sum = raw::merge({raw::enter(constant(graph, 0.0f), "f")});
    auto square = cast<float>(i.value * i.value);
    Variable<float> none(graph, constant(graph, 0.0f));
    const auto handle = build<Enter>({none.handle()}, {"f", true, 10}).output(0);
    if (has_effects)
      square =
          square + Output<float>(build<ReadVariable>({handle}, {}, {}, detail::one_type(DType::float32)).output(0));
    auto limit = cast<float>(raw::enter(n, "f", {.is_constant = true}));
    const auto is_below = [&] {  // reads it on the second device, as the body does
      const auto on = graph.device("/cpu:1");
      return square < limit;
    }();
    auto goes_on = raw::loop_cond(is_below);
    auto [last_i, now_i] = raw::switch_on(i.value, goes_on);
    auto [last_sum, now_sum] = raw::switch_on(sum.value, goes_on);
    const auto next = [&] {  // a constant is there from the beginning
      const auto more = now_i + 1;
      const auto after = graph.control_dependencies({constant(graph, 7.0f).operation()});
      return identity(more);
    }();
    raw::next_iteration(next, i);
    raw::next_iteration(on_second_device(graph, [&] { return now_sum + square; }), sum);
    auto total = raw::exit(last_sum);
    Session session(graph, {.num_cpu_devices = 2});
    session.run(none.initializer());
    const auto run = [&] { return session.run({{n, 10}}, total).scalar(); };
    if (has_effects) {
      CHECK(code_of(run) == Code::unimplemented);
    } else {
      CHECK(run() == 0.0f + 1.0f + 4.0f + 9.0f);
    }
    // On one device it has no need of that form.
    PassOptions passes;
    passes.raise_control_flow = true;
    Session soft(graph, {.passes = passes, .soft_placement = true});
    soft.run(none.initializer());
    CHECK(soft.run({{n, 10}}, total).scalar() == 14.0f);
  }
}

TEST_CASE("raised calls keep to the shapes that raw nodes promise", "[frames]") {
  Graph graph;
  auto x = placeholder<float>(graph, PartialShape::unknown());
  auto p = placeholder<bool>(graph, {});
  auto n = placeholder<std::int32_t>(graph, {});
  auto [no, yes] = raw::switch_on(x, p);
  auto joined = raw::merge({Output<float>(no * 1.0f), yes}, PartialShape({dynamic})).value;
  RaisedCounting loop = raised_counting(graph, n, "f");
  raw::next_iteration(loop.now + 1, loop.i);
  auto grown = raw::merge({raw::enter(x, "f")}, PartialShape({dynamic}));
  auto [last, now] = raw::switch_on(grown.value, loop.goes_on);
  raw::next_iteration(concat(0, {now, now}), grown);
  auto result = raw::exit(last);
  for (const bool raises : {false, true}) {
    PassOptions passes;
    passes.raise_control_flow = raises;
    Session session(graph, {.passes = passes});
    const Tensor<float> good({2}, {1.0f, 2.0f}), bad({1, 2}, {1.0f, 2.0f});
    for (const bool side : {false, true}) {
      CHECK(session.run({{x, good}, {p, side}}, joined).shape() == Shape{2});
      CHECK(code_of([&] { session.run({{x, bad}, {p, side}}, joined); }) == Code::invalid_argument);
    }
    for (const int of : {0, 3}) {
      CHECK(session.run({{x, good}, {n, of}}, result).shape() == Shape{2 << of});
      CHECK(code_of([&] { session.run({{x, bad}, {n, of}}, result); }) == Code::invalid_argument);
    }
  }
}

TEST_CASE("raw branches in more branches than are raised run as frames, and fewer as calls", "[frames]") {
  for (const int depth : {20, 40}) {
    Graph graph;
    auto x = placeholder<float>(graph, {});
    std::vector<Output<float>> others;
    Output<float> v = x;
    for (int d = 0; d < depth; ++d) {
      auto [off, on] = raw::switch_on(v, v > static_cast<float>(d));
      others.push_back(off);
      v = on + 0.5f;
    }
    for (int d = depth; d-- > 0;) v = raw::merge({others[static_cast<std::size_t>(d)], v}).value;
    auto y = identity(v);
    PassOptions passes;
    passes.raise_control_flow = true;
    Session session(graph, {.passes = passes});
    for (const float given : {0.0f, 3.25f, 100.0f}) {
      float wanted = given;
      for (int d = 0; d < depth && wanted > static_cast<float>(d); ++d) wanted += 0.5f;
      CHECK(session.run({{x, given}}, y).scalar() == wanted);
    }
    RunMetadata metadata;
    session.run({.trace = true}, &metadata, {{x, 100.0f}}, y);
    std::set<std::string> ops;
    for (const NodeStats& node : metadata.stats.nodes) ops.insert(node.op);
    CHECK(ops.contains("Frames") == (depth == 40));
    CHECK(ops.contains("If") == (depth == 20));
  }
}

TEST_CASE("a call on two devices one of whose inputs may be dead is refused, joined or passed over, not waited for",
          "[frames][split]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}), y = placeholder<float>(graph, {});
  const auto side = placeholder<bool>(graph, {});
  const auto spread = function(graph, "spread", [&](Output<float> u, Output<float> v) {
    return Output<float>(u + on_second_device(graph, [&] { return exp(v); }));
  });
  const auto gives_dead = function(
      graph, "gives_dead", [&](Output<float> u) { return Output<float>(std::get<1>(raw::switch_on(u, side))); });
  const auto direct = spread(std::get<1>(raw::switch_on(x, side)), y);
  const auto behind = spread(gives_dead(x), y);
  const auto [off, on] = raw::switch_on(x, side);
  const auto joined = raw::merge({Output<float>(spread(on, y)), off}).value;
  for (const int threads : {1, 3}) {
    Session session(graph, {.num_threads = threads, .num_cpu_devices = 2});
    for (const bool taken : {false, true}) {
      const auto run = [&](const Output<float>& of) {
        return session.run({.deadline = std::chrono::seconds(20)}, {{x, 2.0f}, {y, 0.0f}, {side, taken}}, of).scalar();
      };
      CHECK(code_of([&] { run(direct); }) == Code::unimplemented);
      CHECK(code_of([&] { run(behind); }) == Code::unimplemented);
      CHECK(run(joined) == (taken ? 3.0f : 2.0f));
    }
  }
}

namespace {

/// Once with frames and once with them raised to calls.
PassOptions in_raised_form(bool raises) {
  PassOptions passes;
  passes.raise_control_flow = raises;
  return passes;
}

/// In a frame: adds one to the variable of the handle, after some nodes.
Operation count_after(Graph& graph, const AnyOutput& handle, const Output<float>& one,
                      std::initializer_list<Operation> after) {
  const auto scope = graph.control_dependencies(after);
  return Operation(build<AssignAdd>(std::vector<AnyOutput>{handle, one}).operation());
}

}  // namespace

TEST_CASE("what waits for the first value of a frame's variable runs in the first iteration alone, raised or not",
          "[frames]") {
  Graph graph;
  const auto n = placeholder<std::int32_t>(graph, {});
  Variable<float> total(graph, constant(graph, 0.0f));
  const auto first = raw::enter(constant(graph, 0), "f");
  auto i = raw::merge({first});
  auto goes_on = raw::loop_cond(i.value < raw::enter(n, "f", {.is_constant = true}));
  auto [last, now] = raw::switch_on(i.value, goes_on);
  const AnyOutput handle = build<Enter>({total.handle()}, {"f", true, 10}).output(0);
  const auto one = raw::enter(constant(graph, 1.0f), "f", {.is_constant = true});
  const Operation counted = count_after(graph, handle, one, {first.operation()});
  auto other = raw::merge({raw::enter(constant(graph, 0), "f")});
  auto other_now = std::get<1>(raw::switch_on(other.value, goes_on));
  raw::next_iteration(now + 1, i);
  {
    const auto scope = graph.control_dependencies({counted});
    raw::next_iteration(identity(other_now), other);
  }
  const auto count = raw::exit(last);
  const auto ended = raw::exit(std::get<0>(raw::switch_on(other.value, goes_on)));
  for (const bool raises : {false, true}) {
    Session session(graph, {.passes = in_raised_form(raises)});
    session.run(total.initializer());
    // The other variable gets no value in later iterations.
    CHECK(code_of([&] { session.run({{n, 3}}, count, ended); }) == Code::invalid_argument);
    CHECK(session.run(total).scalar() == 1.0f);
  }
}

TEST_CASE("a frame some of whose variables are dead runs for the others, raised or not", "[frames]") {
  Graph graph;
  const auto n = placeholder<std::int32_t>(graph, {});
  const auto x = placeholder<float>(graph, {});
  const auto side = placeholder<bool>(graph, {});
  Variable<float> ends(graph, constant(graph, 0.0f));
  RaisedCounting loop = raised_counting(graph, n, "f");
  auto sum = raw::merge({raw::enter(std::get<1>(raw::switch_on(x, side)), "f")});
  auto [last, now] = raw::switch_on(sum.value, loop.goes_on);
  raw::next_iteration(loop.now + 1, loop.i);
  raw::next_iteration(now * 2.0f, sum);
  const auto count = raw::exit(loop.last);
  const auto result = raw::exit(last);
  const auto either = raw::merge({Output<float>(cast<float>(count)), result}).value;
  const Operation ended = count_after(graph, ends.handle(), constant(graph, 1.0f), {result.operation()});
  for (const bool raises : {false, true}) {
    Session session(graph, {.passes = in_raised_form(raises)});
    session.run(ends.initializer());
    for (const bool taken : {false, true}) {
      const auto got = [&](const auto& of) { return session.run({{n, 3}, {x, 1.5f}, {side, taken}}, of).scalar(); };
      CHECK(got(count) == 3);
      CHECK(code_of([&] { return got(result); }) == (taken ? Code::ok : Code::invalid_argument));
      if (taken) CHECK(got(result) == 12.0f);
      if (!taken) CHECK(got(either) == 3.0f);
      session.run({{n, 3}, {x, 1.5f}, {side, taken}}, ended);
      CHECK(session.run(ends).scalar() == (taken ? 1.0f : 0.0f));
    }
  }
}

TEST_CASE("what a Merge or a Switch of a raw branch waits for is checked where its side is taken, raised or not",
          "[frames]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}), y = placeholder<float>(graph, {});
  const auto side = placeholder<bool>(graph, {}), inner = placeholder<bool>(graph, {});
  const auto [off, on] = raw::switch_on(x, side);
  const Operation checked = check_numerics(on, "x").operation();
  const auto after = [&](auto&& build_it) {
    const auto scope = graph.control_dependencies({checked});
    return build_it();
  };
  const auto merged = after([&] { return raw::merge({off, on}).value; });
  const auto late = after([&] { return std::get<1>(raw::switch_on(y, side)); });
  const auto joined = raw::merge({off, Output<float>(late * 2.0f)}).value;
  // A branch inside this branch; another Merge waits for it.
  const auto [inner_off, inner_on] = raw::switch_on(on, std::get<1>(raw::switch_on(inner, side)));
  const Operation inner_checked = check_numerics(inner_on, "x").operation();
  const auto either = raw::merge({inner_off, inner_on}).value;
  const auto outer = [&] {
    const auto scope = graph.control_dependencies({inner_checked});
    return raw::merge({off, either}).value;
  }();
  const float bad = std::numeric_limits<float>::quiet_NaN();
  for (const bool raises : {false, true}) {
    Session session(graph, {.passes = in_raised_form(raises)});
    for (const auto& of : {merged, joined, outer}) {
      const auto run = [&](float value, bool taken) {
        return session.run({{x, value}, {y, 1.0f}, {side, taken}, {inner, true}}, of).scalar();
      };
      CHECK(run(1.0f, true) == (of.node_id() == joined.node_id() ? 2.0f : 1.0f));
      CHECK(std::isnan(run(bad, false)));
      CHECK(code_of([&] { run(bad, true); }) == Code::invalid_argument);
    }
  }
}

TEST_CASE("what the nodes of a raw loop wait for is checked in each iteration, raised or not", "[frames]") {
  for (const int place : {0, 1, 2, 3}) {
    INFO("place " << place);
    Graph graph;
    const auto n = placeholder<std::int32_t>(graph, {});
    auto i = raw::merge({raw::enter(constant(graph, 0), "f")});
    // Bad in the iteration of number 3.
    const auto inverse = 1.0f / (cast<float>(i.value) - 3.0f);
    const Operation checked = check_numerics(inverse, "inverse").operation();
    const auto at = [&](int where, auto&& build_it) {
      const auto scope =
          graph.control_dependencies(where == place ? std::vector<Operation>{checked} : std::vector<Operation>{});
      return build_it();
    };
    const auto goes_on = raw::loop_cond(i.value < raw::enter(n, "f", {.is_constant = true}));
    const auto [last, now] = at(0, [&] { return raw::switch_on(i.value, goes_on); });
    const auto more = at(1, [&] { return identity(now); });
    at(2, [&] { return raw::next_iteration(more + 1, i); });
    const auto count = at(3, [&] { return raw::exit(last); });
    for (const bool raises : {false, true}) {
      Session session(graph, {.passes = in_raised_form(raises)});
      CHECK(session.run({{n, 2}}, count).scalar() == 2);
      CHECK(code_of([&] { session.run({{n, 3}}, count); }) == Code::invalid_argument);
    }
  }
}

TEST_CASE("a raw loop whose condition or next value waits for one side of a branch ends without results on the other",
          "[frames]") {
  for (const bool is_condition : {false, true}) {
    Graph graph;
    const auto n = placeholder<std::int32_t>(graph, {});
    const auto side = placeholder<bool>(graph, {});
    const auto entered = raw::enter(side, "f", {.is_constant = true});
    auto i = raw::merge({raw::enter(constant(graph, 0), "f")});
    const Operation on = identity(std::get<1>(raw::switch_on(i.value, entered))).operation();
    const auto after = [&](bool waits, auto&& build_it) {
      const auto scope = graph.control_dependencies(waits ? std::vector<Operation>{on} : std::vector<Operation>{});
      return build_it();
    };
    const auto is_below = i.value < raw::enter(n, "f", {.is_constant = true});
    const auto goes_on = after(is_condition, [&] { return raw::loop_cond(is_below); });
    const auto [last, now] = raw::switch_on(i.value, goes_on);
    const auto next = now + 1;
    after(!is_condition, [&] { return raw::next_iteration(next, i); });
    const auto count = raw::exit(last);
    for (const bool raises : {false, true}) {
      Session session(graph, {.passes = in_raised_form(raises)});
      CHECK(session.run({{n, 3}, {side, true}}, count).scalar() == 3);
      CHECK(code_of([&] { session.run({{n, 3}, {side, false}}, count); }) == Code::invalid_argument);
    }
  }
}

TEST_CASE("what passes make of raw control flow has no name that a node of the graph has", "[frames][split]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto side = placeholder<bool>(graph, {});
  const auto mine = identity(x * 3.0f, {.name = "Merge/if_0"});
  const auto also_mine = identity(x * 5.0f, {.name = "LoopCond/while_0"});
  const auto [off, on] = raw::switch_on(x, side);
  const auto merged = raw::merge({off, on_second_device(graph, [&] { return on * 2.0f; })}).value;
  auto i = raw::merge({raw::enter(x, "f")});
  const auto goes_on = raw::loop_cond(i.value < 3.0f);
  auto [last, now] = raw::switch_on(i.value, goes_on);
  raw::next_iteration(on_second_device(graph, [&] { return now + 1.0f; }), i);
  const auto result = raw::exit(last);
  // All of them go to the second device.
  const auto sum = on_second_device(graph, [&] { return merged + result * 10.0f + mine * 100.0f + also_mine; });
  Session session(graph, {.num_cpu_devices = 2});
  for (const bool taken : {false, true}) {
    const float got = session.run({{x, 1.0f}, {side, taken}}, sum).scalar();
    CHECK(got == (taken ? 2.0f : 1.0f) + 30.0f + 300.0f + 5.0f);
  }
}

TEST_CASE("a raw loop begins when its variables' Enters may, raised or not", "[frames]") {
  Graph graph;
  const auto n = placeholder<std::int32_t>(graph, {});
  FifoQueue<float> queue(graph, {.shapes = {{}}});
  const auto given = placeholder<float>(graph, {});
  const Operation give = queue.enqueue(given);
  Variable<float> step(graph, constant(graph, 0.0f)), total(graph, constant(graph, 0.0f));
  const Operation set = step.assign(queue.dequeue());
  const auto zero = constant(graph, 0);
  const auto first = [&] {
    const auto scope = graph.control_dependencies({set});
    return raw::enter(zero, "f");
  }();
  const auto i = raw::merge({first});
  auto goes_on = raw::loop_cond(i.value < raw::enter(n, "f", {.is_constant = true}));
  auto [last, now] = raw::switch_on(i.value, goes_on);
  const AnyOutput from = build<Enter>({step.handle()}, {"f", true, 10}).output(0);
  const AnyOutput to = build<Enter>({total.handle()}, {"f", true, 10}).output(0);
  const auto number = cast<float>(now);
  const auto read = [&] {
    const auto scope = graph.control_dependencies({number.operation()});
    return Output<float>(build<ReadVariable>({from}, {}, {}, type_args<float>()));
  }();
  const Operation added = build<AssignAdd>(std::vector<AnyOutput>{to, read + number});
  const auto next = [&] {
    const auto scope = graph.control_dependencies({added});
    return now + 1;
  }();
  raw::next_iteration(next, i);
  const auto count = raw::exit(last);
  for (const bool raises : {false, true}) {
    // On one thread the loop would run before the value is given.
    Session session(graph, {.num_threads = 1, .passes = in_raised_form(raises)});
    session.run(step.initializer());
    session.run(total.initializer());
    std::promise<Status> done;
    session.run_async({{n, 3}}, count, [&](Status status, const auto&...) { done.set_value(status); });
    session.run({{given, 5.0f}}, give);
    CHECK(done.get_future().get().to_string() == Status().to_string());
    CHECK(session.run(total).scalar() == 18.0f);
  }
}

TEST_CASE("a Switch of a raw loop may take what is computed of a variable, or a constant", "[frames][split]") {
  for (const bool is_split : {false, true}) {
    Graph graph;
    const auto n = placeholder<std::int32_t>(graph, {});
    auto [i, goes_on, last, now] = raised_counting(graph, n, "f");
    const auto ten_times = i.value * 10;
    const auto [tens_last, tens_now] = raw::switch_on(ten_times, goes_on);
    const auto three = std::get<1>(raw::switch_on(Output<float>(constant(graph, 3.0f)), goes_on));
    auto sum = raw::merge({raw::enter(constant(graph, 0.0f), "f")});
    auto [sum_last, sum_now] = raw::switch_on(sum.value, goes_on);
    const auto on = graph.device(is_split ? "/cpu:1" : "/cpu:0");
    raw::next_iteration(sum_now + three + cast<float>(tens_now) + cast<float>(ten_times), sum);
    raw::next_iteration(now + 1, i);
    const auto total = raw::exit(sum_last);
    const auto tens = raw::exit(tens_last);
    for (const bool raises : {false, true}) {
      Session session(graph, {.num_cpu_devices = 2, .passes = in_raised_form(raises)});
      for (const int limit : {0, 1, 4}) {
        const auto got = session.run({{n, limit}}, total);
        CHECK(got.scalar() == static_cast<float>(3 * limit + 10 * limit * (limit - 1)));
        // An exit that is no variable's is no result of a call.
        if (!is_split) CHECK(session.run({{n, limit}}, tens).scalar() == 10 * limit);
      }
    }
    if (is_split) {
      Session session(graph, {.num_cpu_devices = 2});
      CHECK(code_of([&] { session.run({{n, 3}}, total, tens); }) == Code::unimplemented);
    }
  }
}

TEST_CASE("a raw branch that hangs together with a branch in another one is alive on its own, raised or not",
          "[frames]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto p = placeholder<bool>(graph, {}), q = placeholder<bool>(graph, {});
  const auto inside = std::get<1>(raw::switch_on(x, q));
  auto [inner_no, inner_yes] = raw::switch_on(inside, p);
  auto [no, yes] = raw::switch_on(x, p);
  const auto of_both = inner_yes + yes;
  const auto outer = raw::merge({no, yes * 2.0f}).value;
  const auto inner = raw::merge({inner_no, of_both * 3.0f}).value;
  const auto joined = raw::merge({Output<float>(std::get<0>(raw::switch_on(x, q)) - 5.0f), inner}).value;
  for (const bool raises : {false, true}) {
    Session session(graph, {.passes = in_raised_form(raises)});
    for (const bool side : {false, true}) {
      const auto run = [&](const auto& of, bool is_inside) {
        return session.run({{x, 1.0f}, {p, side}, {q, is_inside}}, of).scalar();
      };
      CHECK(run(outer, false) == (side ? 2.0f : 1.0f));
      CHECK(run(outer, true) == (side ? 2.0f : 1.0f));
      CHECK(run(inner, true) == (side ? 6.0f : 1.0f));
      CHECK(code_of([&] { run(inner, false); }) == Code::invalid_argument);
      for (const bool is_inside : {false, true}) {
        const auto [of_outer, of_joined] = session.run({{x, 1.0f}, {p, side}, {q, is_inside}}, outer, joined);
        CHECK(of_outer.scalar() == (side ? 2.0f : 1.0f));
        CHECK(of_joined.scalar() == (!is_inside ? -4.0f : side ? 6.0f : 1.0f));
      }
    }
  }
}
