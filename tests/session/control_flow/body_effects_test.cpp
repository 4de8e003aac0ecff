// A step runs all effects of a body, in every form, even if it asks for only some of the results.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/control_flow_forms.hpp"

#include <iterator>
#include <string>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

using EffectEdge = df::Output<float>;

/// Two results: the second one adds `by` to the variable.
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

TEST_CASE("a call, a branch or a loop of one result has had its effects where it is run or waited for") {
  df::SessionOptions options{.num_threads = 3};
  options.passes = df::testing::each_form();
  const bool is_inlined = GENERATE(false, true);
  df::Graph graph;
  const df::Variable<int> count(graph, 0, {.name = "count"});
  const auto x = df::placeholder<float>(graph, {});
  const auto counting = [&](int by, const EffectEdge& value) {
    return df::with_dependencies({count.assign_add(by)}, value);
  };
  const auto function =
      df::function(graph, "f", [&](EffectEdge v) { return counting(1, v * 2.0f); }, {.is_inlined = is_inlined});
  const EffectEdge calls[] = {
      function(x),
      df::cond(
          x > 0.0f, [&] { return counting(10, x * 2.0f); }, [&] { return counting(20, x * 3.0f); }),
      df::case_of(df::constant(graph, 0), std::tuple{[&] { return counting(100, x * 2.0f); }}),
      df::while_loop([](auto v) { return v < 10.0f; }, [&](auto v) { return EffectEdge(counting(1000, v + 4.0f)); },
                     x + 0.0f),
      df::while_loop([&](auto v) { return counting(10000, v) < 10.0f; }, [](auto v) { return v + 4.0f; }, x + 0.0f)};
  std::vector<df::Output<int>> after;
  for (const EffectEdge& each : calls) {
    const auto waits = graph.control_dependencies({each.operation()});
    after.push_back(count.read());
  }
  df::Session session(graph, options);
  session.run(df::initialize_variables(graph));
  int expected = 0;
  for (const int round : {0, 1, 2}) {
    INFO("round " << round);
    const int effects[] = {1, round == 1 ? 20 : 10, 100, 3000, 40000};
    for (std::size_t k = 0; k < std::size(calls); ++k) {
      INFO("call " << k);
      const float value = k == 1 && round == 1 ? -1.0f : 1.0f;
      session.run({{x, value}}, calls[k].operation());
      expected += effects[k];
      CHECK(session.run(count).scalar() == expected);
      expected += effects[k];
      CHECK(session.run({{x, value}}, after[k]).scalar() == expected);
    }
  }
}

TEST_CASE("what a call waits for has been done when its body reads a variable and nothing else") {
  df::SessionOptions options;
  options.passes = df::testing::each_form();
  options.num_threads = GENERATE(1, 3);
  options.num_cpu_devices = GENERATE(1, 2);
  const bool is_inlined = GENERATE(false, true);
  df::Graph graph;
  const auto on_last = [&] { return graph.device(df::str_cat("/cpu:", options.num_cpu_devices - 1)); };
  std::vector<df::Variable<int>> variables;
  {
    const auto on = on_last();
    variables.emplace_back(graph, 0, df::VariableOptions{.name = "count"});
  }
  const df::Variable<int>& count = variables[0];
  const df::Variable<float> large(graph, df::Tensor<float>::full({300, 300}, 0.0f), {.name = "large"});
  const auto slow = count.assign(df::cast<int>(df::reduce_sum(df::matmul(df::matmul(large, large), large))) + 7);
  const auto reads = df::function(graph, "reads", [&](df::Output<int> v) { return count.read() * 10 + v; },
                                  {.is_inlined = is_inlined});
  const auto triples = df::function(graph, "triples",
                                    [&](df::Output<int> v) {
                                      return std::tuple{v, count.assign(count.read() * 3 + v)};
                                    },
                                    {.is_inlined = is_inlined});
  df::Output<int> read, only;
  {
    const auto waits = graph.control_dependencies({slow});
    read = reads(df::constant(graph, 1));
    only = df::case_of(df::constant(graph, 0), std::tuple{[&] { return count.read() * 10; }});
  }
  const auto first = std::get<1>(triples(df::constant(graph, 2)));
  df::Operation second;
  {
    const auto waits = graph.control_dependencies({first});
    second = std::get<1>(triples(df::constant(graph, 2)));
  }
  df::Session session(graph, options);
  for (int i = 0; i < 5; ++i) {
    session.run(df::initialize_variables(graph));
    CHECK(session.run(read).scalar() == 71);
    session.run(df::initialize_variables(graph));
    CHECK(session.run(only).scalar() == 70);
    session.run(df::initialize_variables(graph));
    session.run(second);
    CHECK(session.run(count).scalar() == 8);
  }
}

TEST_CASE("a function that calls itself changes a variable on another device, in every form") {
  df::SessionOptions options{.num_threads = 2, .num_cpu_devices = 2};
  options.passes = df::testing::each_form();
  using Edge = df::Output<int>;
  df::Graph graph;
  const auto x = df::placeholder<int>(graph, {});
  std::vector<df::Variable<int>> variables;
  {
    const auto on = graph.device("/cpu:1");
    variables.emplace_back(graph, 1, df::VariableOptions{.name = "count"});
  }
  const df::Variable<int>& count = variables[0];
  const auto adds = df::recursive_function<Edge(Edge, Edge)>(
      graph, "adds",
      [&](const auto& self, Edge u, Edge k) {
        return df::cond(
            k < 1, [&] { return Edge(u + 0); },
            [&] {
              const Edge next = df::with_dependencies({count.assign_add(u)}, u * 2);
              return Edge((self(next, k - 1) + k) % 1009);
            });
      },
      {.shapes = {df::PartialShape({}), df::PartialShape({})}, .result_shapes = {df::PartialShape({})}});
  const Edge y = adds(x, df::constant(graph, 2));
  df::Session session(graph, options);
  session.run(df::initialize_variables(graph));
  CHECK(session.run({{x, 5}}, y).scalar() == 23);
  CHECK(session.run(count).scalar() == 16);
}
