// What a body does is done whole, whichever of its results a step asks for, in every form.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "control_flow_forms.hpp"

#include <tuple>

namespace df = dflow;

namespace {

using EffectEdge = df::Output<float>;

/// One of two results counts by a variable.
std::tuple<EffectEdge, EffectEdge> counting_pair(const df::Variable<int>& count, int by, const EffectEdge& x) {
  return {x * 2.0f, df::with_dependencies({count.assign_add(by)}, x)};
}

}  // namespace

TEST_CASE("a function's effects are those of its whole body, whichever result is fetched, called or inlined") {
  df::SessionOptions options{.num_threads = 2, .num_cpu_devices = 2};
  options.passes = df::testing::each_form();
  const bool is_inlined = GENERATE(false, true);
  df::Graph graph;
  const df::Variable<int> count(graph, 0, {.name = "count"});
  const auto x = df::placeholder<float>(graph, {});
  const auto inner = df::function(graph, "inner", [&](EffectEdge v) { return counting_pair(count, 1, v); },
                                  {.is_inlined = is_inlined});
  const auto outer = df::function(graph, "outer",
                                  [&](EffectEdge v) {
                                    const auto [first, second] = inner(v);
                                    return std::tuple{first, v * 3.0f};
                                  },
                                  {.is_inlined = is_inlined});
  const auto [doubled, same] = inner(x);
  const auto [of_inner, of_outer] = outer(x);
  df::Session session(graph, options);
  session.run(df::initialize_variables(graph));
  CHECK(session.run({{x, 3.0f}}, doubled).scalar() == 6.0f);
  CHECK(session.run(count).scalar() == 1);
  CHECK(session.run({{x, 3.0f}}, same).scalar() == 3.0f);
  CHECK(session.run(count).scalar() == 2);
  CHECK(session.run({{x, 3.0f}}, of_outer).scalar() == 9.0f);
  CHECK(session.run(count).scalar() == 3);
  CHECK(session.run({{x, 3.0f}}, of_inner).scalar() == 6.0f);
  CHECK(session.run(count).scalar() == 4);
}

TEST_CASE("a branch's effects are those of its whole body, whichever result is fetched") {
  df::SessionOptions options{.num_threads = 2};
  options.passes = df::testing::each_form();
  df::Graph graph;
  const df::Variable<int> count(graph, 0, {.name = "count"});
  const auto x = df::placeholder<float>(graph, {});
  const auto [doubled, same] = df::cond(
      x > 0.0f, [&] { return counting_pair(count, 1, x); }, [&] { return counting_pair(count, 10, x); });
  const auto only = df::case_of(df::constant(graph, 0), std::tuple{[&] { return counting_pair(count, 100, x); }});
  df::Session session(graph, options);
  session.run(df::initialize_variables(graph));
  CHECK(session.run({{x, 3.0f}}, doubled).scalar() == 6.0f);
  CHECK(session.run(count).scalar() == 1);
  CHECK(session.run({{x, -3.0f}}, doubled).scalar() == -6.0f);
  CHECK(session.run(count).scalar() == 11);
  CHECK(session.run({{x, -3.0f}}, same).scalar() == -3.0f);
  CHECK(session.run(count).scalar() == 21);
  CHECK(session.run({{x, 3.0f}}, std::get<0>(only)).scalar() == 6.0f);
  CHECK(session.run(count).scalar() == 121);
}

TEST_CASE("a loop's effects are those of its whole body, whichever variable is fetched") {
  df::SessionOptions options{.num_threads = 2};
  options.passes = df::testing::each_form();
  df::Graph graph;
  df::FifoQueue<float> queue(graph, {.capacity = 100, .shapes = {{}}});
  const auto limit = df::placeholder<int>(graph, {});
  const auto [i, sum] = df::while_loop([&](auto i, auto) { return i < limit; },
                                       [&](auto i, auto sum) {
                                         const df::Operation put = queue.enqueue(sum);
                                         return std::tuple{i + 1, df::with_dependencies({put}, sum + 1.0f)};
                                       },
                                       std::tuple{df::constant(graph, 0), df::constant(graph, 0.0f)});
  const auto [left, total] = df::while_loop([&](auto, auto) { return queue.size() > 0; },
                                            [&](auto left, auto total) {
                                              return std::tuple{left + 1, total + queue.dequeue()};
                                            },
                                            std::tuple{df::constant(graph, 0), df::constant(graph, 0.0f)});
  df::Session session(graph, options);
  CHECK(session.run({{limit, 3}}, i).scalar() == 3);
  CHECK(session.run(queue.size()).scalar() == 3);
  CHECK(session.run({{limit, 2}}, sum).scalar() == 2.0f);
  CHECK(session.run({{limit, 0}}, i).scalar() == 0);
  CHECK(session.run(queue.size()).scalar() == 5);
  CHECK(session.run(left).scalar() == 5);
  CHECK(session.run(queue.size()).scalar() == 0);
}
