#include <dflow/ops/control/frames.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/control_flow_programs.hpp"
#include "support/errors.hpp"
#include "support/sanitized.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

using namespace dflow;
namespace raw = dflow::frames;

namespace {

/// Gives its input when four kernels of this op wait.
struct MeetsFour : Op<"MeetsFour", TypeList<float>> {
  static void infer(InferContext& context) { context.set_output(0, context.input(0)); }
};

struct Meeting {
  std::mutex mutex;
  std::vector<AsyncKernel::Done> waiting;
};
Meeting& meeting() {
  static Meeting here;
  return here;
}

}  // namespace

template <>
struct dflow::Kernel<MeetsFour, dflow::Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    context.set_output(0, context.input(0));
    std::vector<AsyncKernel::Done> all;
    {
      const std::lock_guard lock(meeting().mutex);
      meeting().waiting.push_back(std::move(done));
      if (meeting().waiting.size() == 4) all.swap(meeting().waiting);
    }
    for (AsyncKernel::Done& each : all) each(Status());
  }
};

namespace {

template <class T>
T only_element(const Tensor<T>& tensor) {
  return *tensor.data();
}
std::vector<float> elements_of(const Tensor<float>& tensor) { return {tensor.span().begin(), tensor.span().end()}; }

/// The test runs once with frames and once with them raised to calls.
PassOptions in_each_form() {
  PassOptions passes;
  passes.raise_control_flow = GENERATE(false, true);
  return passes;
}

struct RawLoop {
  raw::Merged<std::int32_t> i;
  Output<bool> goes_on;
  Output<std::int32_t> last;
  Output<std::int32_t> now;
};

/// The start of i = first; while (i < limit) { ... }.
RawLoop raw_counting(Output<std::int32_t> first, Output<std::int32_t> limit, const std::string& name,
                     std::int64_t parallel = 10) {
  const raw::EnterOptions variable{.parallel_iterations = parallel};
  const raw::EnterOptions invariant{.is_constant = true, .parallel_iterations = parallel};
  auto i = raw::merge({raw::enter(first, name, variable)});
  auto goes_on = raw::loop_cond(i.value < raw::enter(limit, name, invariant));
  auto [last, now] = raw::switch_on(i.value, goes_on);
  return {i, goes_on, last, now};
}

}  // namespace

TEST_CASE("what raw nodes are given at run time is what was said of it", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto x = placeholder<float>(graph, PartialShape::unknown());
  const auto side = placeholder<bool>(graph, PartialShape::unknown());
  const auto merged = raw::merge({x}, PartialShape({dynamic})).value;
  const auto condition = raw::loop_cond(side);
  const auto on = std::get<1>(raw::switch_on(x, side));
  const auto made = on + 1.0f;
  const Tensor<bool> none({0});
  for (const int num_threads : {1, 3}) {
    Session session(graph, {.num_threads = num_threads, .passes = passes});
    CHECK(session.run({{x, Tensor<float>({2}, {1.0f, 2.0f})}}, merged)(1) == 2.0f);
    const Status rank = status_of([&] { return session.run({{x, 1.0f}}, merged); });
    CHECK((rank.code() == Code::invalid_argument && mentions(rank, "has shape []") && mentions(rank, "to be [?]")));
    CHECK(mentions(status_of([&] { return session.run({{side, none}}, condition); }), "a bool [0]"));
    CHECK(mentions(status_of([&] { return session.run({{x, 1.0f}, {side, none}}, made); }), "a bool [0]"));
  }
  CHECK(code_of([&] { raw::merge({constant(graph, 1.0f)}, PartialShape({dynamic})); }) == Code::invalid_argument);
}

TEST_CASE("a Switch passes its input on to one side, and a Merge what comes alive", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto x = placeholder<float>(graph, Shape{2});
  const auto side = placeholder<bool>(graph, Shape{});
  const auto [off, on] = raw::switch_on(x, side);
  const auto merged = raw::merge({off * 2.0f, on * 3.0f});
  Session session(graph, {.passes = passes});
  const Tensor<float> given({2}, {1, 2});
  for (int round = 0; round < 3; ++round) {
    auto [no, which] = session.run({{x, given}, {side, false}}, merged.value, merged.index);
    CHECK(elements_of(no) == std::vector<float>{2, 4});
    CHECK(only_element(which) == 0);
    auto [yes, other] = session.run({{x, given}, {side, true}}, merged.value, merged.index);
    CHECK(elements_of(yes) == std::vector<float>{3, 6});
    CHECK(only_element(other) == 1);
  }
}

TEST_CASE("what was not taken is dead to a fetch, and to what reads it", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto x = placeholder<float>(graph, Shape{});
  const auto side = placeholder<bool>(graph, Shape{});
  const auto [off, on] = raw::switch_on(x, side);
  const auto behind = exp(off) + 1.0f;
  Session session(graph, {.passes = passes});
  CHECK(only_element(session.run({{x, 0.0f}, {side, false}}, behind)) == 2.0f);
  CHECK(code_of([&] { session.run({{x, 0.0f}, {side, true}}, behind); }) == Code::invalid_argument);
  CHECK(code_of([&] { session.run({{x, 0.0f}, {side, true}}, off); }) == Code::invalid_argument);
  CHECK(only_element(session.run({{x, 7.0f}, {side, true}}, on)) == 7.0f);
}

TEST_CASE("what waits for something dead is dead", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto x = placeholder<float>(graph, Shape{});
  const auto side = placeholder<bool>(graph, Shape{});
  const auto [off, on] = raw::switch_on(side, side);
  // TensorFlow gates the values that a branch makes from nothing in the same way.
  const auto one = [&] {
    const auto scope = graph.control_dependencies({identity(off).operation()});
    return constant(graph, 1.0f);
  }();
  const auto ten = [&] {
    const auto scope = graph.control_dependencies({identity(on).operation()});
    return constant(graph, 10.0f);
  }();
  const auto merged = raw::merge({one, ten});
  Session session(graph, {.passes = passes});
  CHECK(only_element(session.run({{side, false}}, merged.value)) == 1.0f);
  CHECK(only_element(session.run({{side, true}}, merged.value)) == 10.0f);
  CHECK(only_element(session.run({{side, true}, {x, 2.0f}}, merged.value * x)) == 20.0f);
  CHECK(code_of([&] { session.run({{side, true}}, one); }) == Code::invalid_argument);
}

TEST_CASE("a branch one of whose inputs a call gives dead takes the side that does not read it", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto x = placeholder<float>(graph, Shape{}), y = placeholder<float>(graph, Shape{});
  const auto side = placeholder<bool>(graph, Shape{}), gives = placeholder<bool>(graph, Shape{});
  const auto gives_dead = function(
      graph, "gives_dead", [&](Output<float> u) { return Output<float>(std::get<1>(raw::switch_on(u, gives))); });
  const auto off = std::get<0>(raw::switch_on(gives_dead(x), side));
  const auto on = std::get<1>(raw::switch_on(y, side));
  const auto merged = raw::merge({Output<float>(off + 1.0f), Output<float>(on * 2.0f)}).value;
  Session session(graph, {.passes = passes});
  const auto run = [&](bool taken, bool given) {
    return only_element(session.run({{x, 1.0f}, {y, 4.0f}, {side, taken}, {gives, given}}, merged));
  };
  CHECK(run(true, false) == 8.0f);
  CHECK(run(true, true) == 8.0f);
  CHECK(run(false, true) == 2.0f);
  CHECK(code_of([&] { run(false, false); }) == Code::invalid_argument);
}

TEST_CASE("branches in branches take one of four ways", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto x = placeholder<float>(graph, Shape{});
  const auto a = placeholder<bool>(graph, Shape{});
  const auto b = placeholder<bool>(graph, Shape{});
  const auto [x_off, x_on] = raw::switch_on(x, a);
  const auto inner = [&](Output<float> v, Output<bool> side, float no, float yes) {
    const auto [off, on] = raw::switch_on(v, side);
    return raw::merge({off + no, on + yes}).value;
  };
  const auto [b_off, b_on] = raw::switch_on(b, a);
  const auto y = raw::merge({inner(x_off, b_off, 1, 2), inner(x_on, b_on, 3, 4)}).value;
  Session session(graph, {.passes = passes});
  for (const bool first : {false, true}) {
    for (const bool second : {false, true}) {
      const float wanted = 10 + (first ? 3.0f : 1.0f) + (second ? 1.0f : 0.0f);
      CHECK(only_element(session.run({{x, 10.0f}, {a, first}, {b, second}}, y)) == wanted);
    }
  }
}

TEST_CASE("a frame runs its nodes once in each iteration", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto limit = placeholder<std::int32_t>(graph, Shape{});
  const auto x = placeholder<float>(graph, Shape{});
  for (const std::int64_t parallel : {1, 2, 10}) {
    const std::string name = "loop" + std::to_string(parallel);
    RawLoop loop = raw_counting(constant(graph, 0), limit, name, parallel);
    auto sum = raw::merge({raw::enter(x, name, {.parallel_iterations = parallel})});
    auto [sum_last, sum_now] = raw::switch_on(sum.value, loop.goes_on);
    raw::next_iteration(loop.now + 1, loop.i);
    raw::next_iteration(sum_now * 2.0f, sum);
    const auto count = raw::exit(loop.last);
    const auto total = raw::exit(sum_last);
    for (const int threads : {1, 3}) {
      Session session(graph, {.num_threads = threads, .passes = passes});
      for (const int n : {0, 1, 2, 7, 20}) {
        auto [i, y] = session.run({{limit, n}, {x, 1.5f}}, count, total);
        CHECK(only_element(i) == n);
        CHECK(only_element(y) == 1.5f * static_cast<float>(1 << n));
      }
      CHECK(only_element(session.run({{limit, 3}, {x, 1.0f}}, total + 1.0f)) == 9.0f);
    }
  }
}

TEST_CASE("a frame in a frame begins anew in each iteration", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto n = placeholder<std::int32_t>(graph, Shape{});
  // sum over i < n of sum over j < i of 10 i + j
  RawLoop outer = raw_counting(constant(graph, 0), n, "outer");
  auto sum = raw::merge({raw::enter(constant(graph, 0), "outer")});
  auto [sum_last, sum_now] = raw::switch_on(sum.value, outer.goes_on);
  const auto zero = zeros_like(outer.now);
  RawLoop inner = raw_counting(zero, outer.now, "inner");
  auto part = raw::merge({raw::enter(sum_now, "inner")});
  auto [part_last, part_now] = raw::switch_on(part.value, inner.goes_on);
  const auto ten_i = raw::enter(outer.now * 10, "inner", {.is_constant = true});
  raw::next_iteration(inner.now + 1, inner.i);
  raw::next_iteration(part_now + ten_i + inner.now, part);
  raw::next_iteration(outer.now + 1, outer.i);
  raw::next_iteration(raw::exit(part_last), sum);
  const auto total = raw::exit(sum_last);
  for (const int threads : {1, 3}) {
    Session session(graph, {.num_threads = threads, .passes = passes});
    for (const int count : {0, 1, 2, 5, 9}) {
      int wanted = 0;
      for (int i = 0; i < count; ++i) {
        for (int j = 0; j < i; ++j) wanted += 10 * i + j;
      }
      CHECK(only_element(session.run({{n, count}}, total)) == wanted);
    }
  }
}

TEST_CASE("a Merge in a frame takes a constant in each iteration", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto n = placeholder<std::int32_t>(graph, Shape{});
  RawLoop loop = raw_counting(constant(graph, 0), n, "loop");
  auto sum = raw::merge({raw::enter(constant(graph, 0), "loop")});
  auto [sum_last, sum_now] = raw::switch_on(sum.value, loop.goes_on);
  const auto never = std::get<1>(raw::switch_on(loop.now, loop.now < constant(graph, 0)));
  const auto seven = raw::merge({never, constant(graph, 7)});
  raw::next_iteration(sum_now + seven.value * 10 + seven.index, sum);
  raw::next_iteration(loop.now + 1, loop.i);
  const auto total = raw::exit(sum_last);
  for (const int threads : {1, 3}) {
    Session session(graph, {.num_threads = threads, .passes = passes});
    for (const int count : {0, 1, 5}) CHECK(only_element(session.run({{n, count}}, total)) == 71 * count);
  }
}

TEST_CASE("a branch in a frame, and a frame in a branch", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto n = placeholder<std::int32_t>(graph, Shape{});
  const auto runs = placeholder<bool>(graph, Shape{});
  const auto [n_off, n_on] = raw::switch_on(n, runs);
  const auto [zero_off, zero_on] = raw::switch_on(constant(graph, 0), runs);
  RawLoop loop = raw_counting(zero_on, n_on, "loop");
  auto sum = raw::merge({raw::enter(zero_on, "loop")});
  auto [sum_last, sum_now] = raw::switch_on(sum.value, loop.goes_on);
  // Odd numbers are added, even numbers are subtracted.
  const auto is_odd = equal(mod(loop.now, constant(graph, 2)), constant(graph, 1));
  const auto [even, odd] = raw::switch_on(loop.now, is_odd);
  const auto [sum_even, sum_odd] = raw::switch_on(sum_now, is_odd);
  raw::next_iteration(raw::merge({sum_even - even, sum_odd + odd}).value, sum);
  raw::next_iteration(loop.now + 1, loop.i);
  const auto result = raw::merge({n_off * 1000, raw::exit(sum_last)}).value;
  Session session(graph, {.passes = passes});
  for (int round = 0; round < 2; ++round) {
    CHECK(only_element(session.run({{n, 6}, {runs, true}}, result)) == 3);
    CHECK(only_element(session.run({{n, 0}, {runs, true}}, result)) == 0);
    CHECK(only_element(session.run({{n, 6}, {runs, false}}, result)) == 6000);
  }
}

TEST_CASE("a million iterations", "[frames]") {
  constexpr int many = dflow::testing::is_sanitized ? 100'000 : 1'000'000;
  const PassOptions passes = in_each_form();
  Graph graph;
  RawLoop loop = raw_counting(constant(graph, 0), constant(graph, many), "loop");
  raw::next_iteration(loop.now + 1, loop.i);
  const auto count = raw::exit(loop.last);
  Session session(graph, {.passes = passes});
  CHECK(only_element(session.run(count)) == many);
}

TEST_CASE("variables are read and written in a frame", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  Variable<float> total(graph, constant(graph, 0.0f));
  RawLoop loop = raw_counting(constant(graph, 0), constant(graph, 5), "loop", 1);
  const auto handle = build<Enter>({total.handle()}, {"loop", true, 1}).output(0);
  const auto added = build<AssignAdd>(std::vector<AnyOutput>{handle, cast<float>(loop.now)}).operation();
  const auto next = [&] {
    const auto scope = graph.control_dependencies({Operation(added)});
    return loop.now + 1;
  }();
  raw::next_iteration(next, loop.i);
  const auto count = raw::exit(loop.last);
  Session session(graph, {.passes = passes});
  session.run(total.initializer());
  session.run(count);
  CHECK(only_element(session.run(total)) == 10.0f);
}

TEST_CASE("an error in a frame names its node", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  RawLoop loop = raw_counting(constant(graph, 0), constant(graph, 10), "loop");
  const auto bad = constant(graph, 6) / (constant(graph, 3) - loop.now);
  raw::next_iteration(loop.now + minimum(bad, constant(graph, 1)) * 0 + 1, loop.i);
  const auto count = raw::exit(loop.last);
  for (const int threads : {1, 3}) {
    Session session(graph, {.num_threads = threads, .passes = passes});
    for (int round = 0; round < 3; ++round) {
      const Status status = status_of([&] { session.run(count); });
      CHECK(status.code() == Code::invalid_argument);
      CHECK(status.node() == bad.node().name);
    }
  }
}

TEST_CASE("a frame that does not end is cancelled, and meets its deadline", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  RawLoop loop = raw_counting(constant(graph, 0), constant(graph, 10), "loop");
  raw::next_iteration(loop.now * 1, loop.i);
  const auto count = raw::exit(loop.last);
  Session session(graph, {.passes = passes});
  CHECK(code_of([&] { session.run({.deadline = std::chrono::milliseconds(20)}, {}, count); }) ==
        Code::deadline_exceeded);
}

TEST_CASE("what leaves no frame, or mixes two, is an error that names it", "[frames]") {
  const auto compile = [](Graph& graph, auto edge) {
    Session session(graph);
    return status_of([&] { session.run(edge); });
  };
  SECTION("an Exit without a frame") {
    Graph graph;
    CHECK(compile(graph, raw::exit(constant(graph, 1.0f))).code() == Code::invalid_argument);
  }
  SECTION("an edge from outside") {
    Graph graph;
    const auto x = random_uniform<float>(graph, Shape{});
    const auto inside = raw::enter(x, "loop") + x;
    const Status status = compile(graph, raw::exit(inside));
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.node() == inside.node().name);
  }
  SECTION("a fetch inside") {
    Graph graph;
    const auto inside = raw::enter(constant(graph, 1.0f), "loop");
    CHECK(compile(graph, inside).code() == Code::invalid_argument);
  }
  SECTION("two numbers of iterations at once") {
    Graph graph;
    const auto a = raw::enter(constant(graph, 1.0f), "loop", {.parallel_iterations = 2});
    const auto b = raw::enter(constant(graph, 1.0f), "loop", {.parallel_iterations = 3});
    CHECK(compile(graph, raw::exit(a + b)).code() == Code::invalid_argument);
  }
  SECTION("shapes that grow") {
    Graph graph;
    auto merged = raw::merge({raw::enter(constant(graph, Tensor<float>({2}, {1, 2})), "loop")});
    CHECK(code_of([&] {
            raw::next_iteration(concat(0, {merged.value, merged.value}), merged);
          }) == Code::invalid_argument);
  }
  SECTION("something that is no Merge") {
    Graph graph;
    const auto x = raw::enter(constant(graph, 1.0f), "loop");
    CHECK(code_of([&] { build<NextIteration>({x, x}); }) == Code::invalid_argument);
  }
}

TEST_CASE("a variable of a frame grows where its Merge says so", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  RawLoop loop = raw_counting(constant(graph, 0), constant(graph, 4), "loop");
  auto rows = raw::merge({raw::enter(constant(graph, Tensor<float>({1}, {1})), "loop")}, PartialShape{dynamic});
  auto [last, now] = raw::switch_on(rows.value, loop.goes_on);
  raw::next_iteration(concat(0, {now, now}), rows);
  raw::next_iteration(loop.now + 1, loop.i);
  Session session(graph, {.passes = passes});
  CHECK(session.run(raw::exit(last)).shape() == Shape{16});
}

TEST_CASE("edges of a raw graph are fed", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto x = constant(graph, 1.0f);
  const auto [off, on] = raw::switch_on(x, constant(graph, true));
  const auto y = raw::merge({off * 2.0f, on * 3.0f});
  Session session(graph, {.passes = passes});
  CHECK(only_element(session.run(y.value)) == 3.0f);
  CHECK(only_element(session.run({{on, 5.0f}}, y.value)) == 15.0f);
  CHECK(only_element(session.run({{off, 5.0f}, {on, 7.0f}}, y.value)) > 9.0f);
  CHECK(only_element(session.run({{y.value, 4.0f}}, y.value + 1.0f)) == 5.0f);
}

TEST_CASE("a raw graph goes into a GraphDef and back", "[frames]") {
  const PassOptions passes = in_each_form();
  Graph graph;
  const auto n = placeholder<std::int32_t>(graph, Shape{}, {.name = "n"});
  RawLoop loop = raw_counting(constant(graph, 0), n, "loop");
  raw::next_iteration(loop.now + 2, loop.i);
  static_cast<void>(raw::exit(loop.last, {.name = "count"}));
  Graph copy = import_graph(to_graph_def(graph), standard_op_table());
  Session session(copy, {.passes = passes});
  CHECK(only_element(session.run({{Output<std::int32_t>(copy.output("n")), 5}},
                                 Output<std::int32_t>(copy.output("count")))) == 6);
}

TEST_CASE("programs give the same as functions and in the raw form", "[frames]") {
  for (const dflow::testing::ControlFlowProgram& program : dflow::testing::control_flow_programs()) {
    INFO(program.name);
    for (const int devices : {1, 2}) {
      Graph graph;
      const auto x = placeholder<float>(graph, Shape{});
      const auto n = placeholder<std::int32_t>(graph, Shape{});
      dflow::testing::ControlFlowResults results;
      {
        const auto device = graph.device(devices == 1 ? "" : "/cpu:1");
        results = program.build(graph, x, n);
      }
      for (const bool lowers : {false, true}) {
        for (const int threads : {1, 3}) {
          PassOptions passes;
          passes.lower_control_flow = lowers;
          Session session(graph, {.num_threads = threads, .num_cpu_devices = devices, .passes = passes});
          for (std::size_t i = 0; i < results.size(); ++i) {
            INFO("result " << i << ", lowered: " << lowers << ", threads: " << threads);
            CHECK(only_element(session.run({{x, 1.5f}, {n, 4}}, results[i])) == Approx(program.wanted[i]));
          }
        }
      }
    }
  }
}

TEST_CASE("what a body does is done once in each iteration, in their order, in the raw form too", "[frames]") {
  for (const bool lowers : {false, true}) {
    Graph graph;
    const auto n = placeholder<std::int32_t>(graph, Shape{});
    Variable<float> w(graph, constant(graph, 1.0f));
    const auto count = while_loop([&](auto i) { return i < n; },
                                  [&](auto i) {
                                    const auto done = w.assign(cast<float>(i) + 10.0f);
                                    return with_dependencies({Operation(done)}, i + 1);
                                  },
                                  constant(graph, 0));
    const auto once = cond(
        n > 2, [&] { return Operation(w.assign_add(100.0f)); }, [&] { return Operation(w.assign_sub(100.0f)); });
    PassOptions passes;
    passes.lower_control_flow = lowers;
    Session session(graph, {.num_threads = 3, .passes = passes});
    session.run(w.initializer());
    session.run({{n, 4}}, count);
    CHECK(only_element(session.run(w)) == 13);
    session.run({{n, 3}}, once);
    CHECK(only_element(session.run(w)) == 113);
    session.run({{n, 2}}, once);
    CHECK(only_element(session.run(w)) == 13);
    session.run({{n, 0}}, count);
    CHECK(only_element(session.run(w)) == 13);
  }
}

TEST_CASE("a frame carries arrays whose elements have a shape", "[frames]") {
  Graph graph;
  const auto x = placeholder<float>(graph, Shape{2});
  const auto [i, rows] = while_loop([](auto i, auto) { return i < 3; },
                                    [&](auto i, auto rows) {
                                      return std::tuple{i + 1, rows.write(i, x * cast<float>(i))};
                                    },
                                    std::tuple{constant(graph, 0), TensorArray<float>(graph, 3, {2})});
  const auto either = cond(
      reduce_sum(x) > 0.0f, [&] { return rows; }, [&] { return rows.write(constant(graph, 0), x); });
  const auto all = either.stack();
  const auto slope = gradients(reduce_sum(all), x);
  for (const bool raises : {false, true}) {
    PassOptions passes;
    passes.lower_control_flow = true;
    passes.raise_control_flow = raises;
    Session session(graph, {.passes = passes});
    CHECK(elements_of(session.run({{x, Tensor<float>({2}, {1, 2})}}, all)) == std::vector<float>{0, 0, 1, 2, 2, 4});
    CHECK(elements_of(session.run({{x, Tensor<float>({2}, {1, -2})}}, all)) == std::vector<float>{1, -2, 1, -2, 2, -4});
    CHECK(elements_of(session.run({{x, Tensor<float>({2}, {1, 2})}}, slope)) == std::vector<float>{3, 3});
    CHECK(elements_of(session.run({{x, Tensor<float>({2}, {1, -2})}}, slope)) == std::vector<float>{4, 4});
  }
}

TEST_CASE("iterations that do not depend on each other overlap, as many as are allowed", "[frames]") {
  // A MeetsFour kernel ends when four of them are under way.
  Graph graph;
  const auto x = placeholder<float>(graph, Shape{});
  const auto [i, sum] = while_loop([&](auto i, auto) { return i < 8; },
                                   [&](auto i, auto sum) {
                                     return std::tuple{i + 1, sum + apply<MeetsFour>(x * cast<float>(i))};
                                   },
                                   std::tuple{constant(graph, 0), constant(graph, 0.0f)}, {.parallel_iterations = 4});
  PassOptions passes;
  passes.lower_control_flow = true;
  for (const int threads : {1, 3}) {
    Session session(graph, {.ops = standard_ops + ops<MeetsFour>, .num_threads = threads, .passes = passes});
    RunMetadata metadata;
    CHECK(only_element(session.run({.trace = true}, &metadata, {{x, 2.0f}}, sum)) == 56.0f);
    std::size_t most = 0;
    for (const NodeStats& a : metadata.stats.nodes) {
      const auto is_beside = [&](const NodeStats& b) {
        return b.op == "MeetsFour" && b.start_ns <= a.start_ns && a.start_ns < b.end_ns;
      };
      const auto beside = std::count_if(metadata.stats.nodes.begin(), metadata.stats.nodes.end(), is_beside);
      most = std::max(most, static_cast<std::size_t>(a.op == "MeetsFour" ? beside : 0));
    }
    CHECK(most == 4);
  }
}

TEST_CASE("a body that is lowered more than once gives other devices the results of each", "[frames]") {
  Graph graph;
  const auto x = placeholder<float>(graph, Shape{});
  const auto twice = function(graph, "twice", [](Output<float> u) { return Output<float>(u * 2.0f); });
  const auto powers = function(graph, "powers", [&](Output<float> u) {
    return std::get<1>(while_loop([](auto i, auto) { return i < 3; },
                                  [](auto i, auto v) {
                                    return std::tuple{i + 1, v * 2.0f};
                                  },
                                  std::tuple{constant(graph, 0), u}));
  });
  const std::vector<Output<float>> parts{twice(x), twice(x + 1.0f), powers(x), powers(x + 1.0f)};
  const auto sum = [&] {
    const auto there = graph.device("/cpu:1");
    return Output<float>(parts[0] + 10.0f * parts[1] + 100.0f * parts[2] + 1000.0f * parts[3]);
  }();
  for (const bool lowers : {false, true}) {
    PassOptions passes;
    passes.lower_control_flow = lowers;
    Session session(graph, {.num_cpu_devices = 2, .passes = passes});
    CHECK(only_element(session.run({{x, 1.0f}}, sum)) == 2.0f + 40.0f + 800.0f + 16000.0f);
  }
}

TEST_CASE("an error in a body that is lowered more than once names the node of the body", "[frames]") {
  Graph graph;
  const auto x = placeholder<std::int32_t>(graph, Shape{});
  Output<std::int32_t> bad;
  const auto divided = function(graph, "divided", [&](Output<std::int32_t> u) {
    bad = constant(graph, 6) / u;
    return bad;
  });
  const Output<std::int32_t> sum = divided(x) * divided(x - 1);
  PassOptions passes;
  passes.lower_control_flow = true;
  for (const bool raises : {false, true}) {
    passes.raise_control_flow = raises;
    Session session(graph, {.passes = passes});
    for (const int of : {0, 1}) {
      const Status status = status_of([&] { session.run({{x, of}}, sum); });
      CHECK(status.code() == Code::invalid_argument);
      CHECK(status.node() == bad.node().name);
    }
  }
}

TEST_CASE("an exit that was alive in an iteration before the last is alive for all who read it") {
  for (const bool raises : {false, true}) {
    for (const int times : {2, 3, 6}) {
      INFO(times << " times, raised: " << raises);
      Graph graph;
      const auto limit = placeholder<int>(graph, {});
      const auto i = raw::merge({raw::enter(constant(graph, 0), "counts")});
      const auto goes_on = raw::loop_cond(i.value < raw::enter(limit, "counts", {.is_constant = true}));
      const auto [last, now] = raw::switch_on(i.value, goes_on);
      const auto found = raw::exit(std::get<1>(raw::switch_on(now * 100, equal(now, 1))));
      raw::next_iteration(now + 1, i);
      const auto count = raw::exit(last);
      // A second loop begins when the first has ended.
      const auto j = raw::merge({raw::enter(count * 0, "comes later")});
      const auto [last_later, now_later] = raw::switch_on(j.value, raw::loop_cond(j.value < 20));
      raw::next_iteration(now_later + 1, j);
      const auto later = raw::exit(last_later);
      const auto both = raw::merge({found + later}).value;
      const auto twice = found * 1;
      const auto readers = raw::merge({twice + later + found, later + twice}).value;
      SessionOptions options{.num_threads = 2};
      options.passes.raise_control_flow = raises;
      Session session(graph, options);
      CHECK(session.run({{limit, times}}, found).scalar() == 100);
      CHECK(session.run({{limit, times}}, both).scalar() == 120);
      const int read = session.run({{limit, times}}, readers).scalar();
      CHECK((read == 220 || read == 120));
    }
  }
}
