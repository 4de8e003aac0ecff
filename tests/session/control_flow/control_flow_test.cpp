// Branches and loops with bodies that are functions of the graph.
#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>

#include "catch.hpp"
#include "support/control_flow_forms.hpp"
#include "support/errors.hpp"
#include "support/sanitized.hpp"

#include <chrono>
#include <cstdint>
#include <future>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

std::vector<float> values(const df::Tensor<float>& tensor) { return {tensor.span().begin(), tensor.span().end()}; }

}  // namespace

TEST_CASE("a cond takes one of two branches, whose bodies see what is around them") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  auto y = df::cond(
      df::reduce_sum(x) > 0.0f, [&] { return x * 2.0f; }, [&] { return -x; });
  static_assert(std::is_same_v<decltype(y), df::Output<float>>);
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(values(session.run({{x, df::Tensor<float>({2}, {1, 2})}}, y)) == std::vector<float>{2, 4});
  CHECK(values(session.run({{x, df::Tensor<float>({2}, {-1, -2})}}, y)) == std::vector<float>{1, 2});
  auto z = y + 1.0f;
  CHECK(values(session.run({{x, df::Tensor<float>({1}, {3})}}, z)) == std::vector<float>{7});
}

TEST_CASE("the branch that is not taken does nothing, and one may do nothing but assign") {
  df::Graph graph;
  auto up = df::placeholder<bool>(graph, {});
  df::Variable<float> w(graph, df::Tensor<float>(1.0f), {.name = "w"});
  df::Operation step = df::cond(
      up, [&] { return w.assign_add(1.0f); }, [&] { return w.assign_sub(10.0f); });
  auto nested = df::cond(
      up,
      [&] {
        return df::cond(
            w > 1.5f,
            [&] {
              return std::tuple{w * 10.0f, df::constant(graph, 1)};
            },
            [&] {
              return std::tuple{df::identity(w), df::constant(graph, 2)};
            });
      },
      [&] {
        return std::tuple{-w, df::constant(graph, 3)};
      });
  df::Session session(graph, {.passes = df::testing::each_form()});
  session.run(df::initialize_variables(graph));
  const df::Tensor<bool> yes(true), no(false);
  CHECK(std::get<1>(session.run({{up, yes}}, std::get<0>(nested), std::get<1>(nested))).scalar() == 2);
  session.run({{up, yes}}, step);
  CHECK(session.run(w).scalar() == 2);
  const auto [value, which] = session.run({{up, yes}}, std::get<0>(nested), std::get<1>(nested));
  CHECK(value.scalar() == 20);
  CHECK(which.scalar() == 1);
  session.run({{up, no}}, step);
  CHECK(session.run(w).scalar() == -8);
  CHECK(session.run({{up, no}}, std::get<0>(nested)).scalar() == 8);
}

TEST_CASE("a case takes the branch of its number, and the last one for a number that none has") {
  df::Graph graph;
  auto which = df::placeholder<std::int32_t>(graph, {});
  auto x = df::constant(graph, 3.0f);
  auto y = df::case_of(which, std::tuple{[&] { return x + 0.0f; }, [&] { return x * x; }, [&] { return -x; }});
  df::Session session(graph, {.passes = df::testing::each_form()});
  const float expected[] = {3, 9, -3, -3, -3};
  for (const int i : {0, 1, 2, 3, -1}) {
    const df::Tensor<std::int32_t> index(i);
    CHECK(session.run({{which, index}}, y).scalar() == expected[i < 0 ? 4 : i]);
  }
}

TEST_CASE("a case of very many branches runs in each form") {
  df::Graph graph;
  auto which = df::placeholder<std::int32_t>(graph, {}, {.name = "which"});
  auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  df::case_of(which, std::tuple{[&] { return df::Output<float>(x); }, [&] { return x * x; }}, {.name = "y"});
  for (const std::size_t num_branches : {3u, 255u, 256u, 257u, 7'000u}) {
    df::GraphDef def = df::to_graph_def(graph);
    for (df::NodeDef& node : def.nodes) {
      for (auto& [name, value] : node.attrs) {
        auto* const names = std::get_if<std::vector<std::string>>(&value);
        if (node.op != "Case" || names == nullptr || names->size() != 2) continue;
        const std::vector<std::string> two = *names;
        names->clear();
        for (std::size_t i = 0; i < num_branches; ++i) names->push_back(two[i % 2]);
      }
    }
    df::Graph copy = df::import_graph(def, df::standard_op_table());
    const df::Output<std::int32_t> index(copy.output("which"));
    const df::Output<float> fed(copy.output("x")), y(copy.output("y"));
    auto gradient = df::gradients(y, fed);
    df::Session session(copy, {.passes = df::testing::each_form()});
    const auto last = static_cast<std::int32_t>(num_branches - 1);
    for (const std::int32_t i : {0, 1, 2, last - 1, last}) {
      INFO(i << " of " << num_branches);
      const auto [value, slope] =
          session.run({{index, df::Tensor<std::int32_t>(i)}, {fed, df::Tensor<float>(3.0f)}}, y, gradient);
      CHECK(value.scalar() == (i % 2 == 0 ? 3 : 9));
      CHECK(slope.scalar() == (i % 2 == 0 ? 1 : 6));
    }
  }
}

TEST_CASE("a loop runs none, one and many times") {
  df::Graph graph;
  auto limit = df::placeholder<std::int32_t>(graph, {});
  auto x = df::placeholder<float>(graph, {});
  auto [i, total] = df::while_loop([&](auto i, auto) { return i < limit; },
                                   [&](auto i, auto total) {
                                     return std::tuple{i + 1, total + x};
                                   },
                                   std::tuple{df::constant(graph, 0), df::constant(graph, 0.0f)});
  df::Session session(graph, {.passes = df::testing::each_form()});
  for (const int n : {0, 1, 2, 1000}) {
    const auto [count, sum] =
        session.run({{limit, df::Tensor<std::int32_t>(n)}, {x, df::Tensor<float>(0.5f)}}, i, total);
    CHECK(count.scalar() == n);
    CHECK(sum.scalar() == 0.5f * static_cast<float>(n));
  }
}

TEST_CASE("loops stand in loops and in branches, and count a million iterations") {
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  // The sum of i * j for j <= i <= n.
  auto [i, sum] = df::while_loop([&](auto i, auto) { return i < n; },
                                 [&](auto i, auto sum) {
                                   auto [j, inner] = df::while_loop([&](auto j, auto) { return j < i + 1; },
                                                                    [&](auto j, auto inner) {
                                                                      return std::tuple{j + 1, inner + i * j};
                                                                    },
                                                                    std::tuple{df::constant(graph, 0), sum});
                                   return std::tuple{i + 1, inner};
                                 },
                                 std::tuple{df::constant(graph, 0), df::constant(graph, 0)});
  constexpr std::int32_t many = df::testing::is_sanitized ? 100'000 : 1'000'000;
  auto last = df::while_loop([&](auto k) { return k < many; },
                             [&](auto k) {
                               return df::cond(
                                   k < 0, [&] { return k + 2; }, [&] { return k + 1; });
                             },
                             df::constant(graph, 0));
  df::Session session(graph, {.passes = df::testing::each_form()});
  int expected = 0;
  for (int a = 0; a < 10; ++a) {
    for (int b = 0; b <= a; ++b) expected += a * b;
  }
  CHECK(session.run({{n, df::Tensor<std::int32_t>(10)}}, sum).scalar() == expected);
  CHECK(session.run(last).scalar() == many);
}

TEST_CASE("a variable of a loop may grow where its shape is declared, and only there") {
  df::Graph graph;
  auto one = df::constant(graph, df::Tensor<float>({1, 2}, {1, 2}));
  auto zero = df::constant(graph, 0);
  const auto grow = [&](const df::WhileOptions& options) {
    return std::get<1>(df::while_loop([&](auto i, auto) { return i < 3; },
                                      [&](auto i, auto rows) {
                                        return std::tuple{i + 1, df::concat(0, {rows, one})};
                                      },
                                      std::tuple{zero, one}, options));
  };
  const std::size_t before = graph.store()->size();
  const std::string message = error_of([&] { return grow({}); });
  CHECK(contains(message, "variable 1 enters an iteration with shape [1,2] and leaves it with [2,2]"));
  CHECK(graph.store()->size() == before);
  auto rows = grow({.shapes = {df::Shape{}, {df::dynamic, 2}}});
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(session.run(rows).shape() == df::Shape{4, 2});
}

TEST_CASE("what is in a body has no value outside of it") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  df::Output<float> inside;
  auto y = df::cond(
      x > 0.0f,
      [&] {
        inside = x * 2.0f;
        return inside;
      },
      [&] { return -x; });
  CHECK(contains(error_of([&] { return inside + 1.0f; }), "has no value outside of it"));
  df::Session session(graph, {.passes = df::testing::each_form()});
  const df::Tensor<float> two(2.0f);
  CHECK(contains(error_of([&] { return session.run({{x, two}}, inside); }), "is part of the body of a function"));
  CHECK(contains(error_of([&] { return session.run({{x, two}, {inside, two}}, y); }), "is part of the body"));
  CHECK(contains(error_of([&] { session.run(inside.operation()); }), "is part of the body"));
  CHECK(session.run({{x, two}}, y).scalar() == 4);
  auto wait = [&] {
    return df::cond(
        x > 0.0f,
        [&] {
          const auto after = graph.control_dependencies({y.operation()});
          return x * 2.0f;
        },
        [&] { return -x; });
  };
  CHECK(contains(error_of(wait), "is not part of the same body"));
}

TEST_CASE("a layer that is first called in a body makes its variables outside, and none where the body fails") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {1, 2});
  df::Dense layer(2);
  const auto looped = [&](bool fails) {
    return df::while_loop([&](auto v) { return df::reduce_sum(v) < 100.0f; },
                          [&](auto v) {
                            auto next = layer(v);
                            if (fails) throw std::runtime_error("the user's own");
                            return v + 30.0f + next * 0.0f;
                          },
                          x);
  };
  for (int i = 0; i < 3; ++i) CHECK_THROWS_WITH(looped(true), "the user's own");
  CHECK_FALSE(layer.has_variables());
  CHECK(df::global_variables(graph).empty());
  auto y = looped(false), z = looped(false);
  CHECK(df::global_variables(graph).size() == 2);
  CHECK_FALSE(layer.kernel().handle().node().function.is_valid());
  df::Session session(graph, {.passes = df::testing::each_form()});
  session.run(df::initialize_variables(graph));
  const auto [a, b] = session.run({{x, df::Tensor<float>({1, 2}, {1, 2})}}, y, z);
  CHECK(values(a) == values(b));
  CHECK(a(0, 0) + a(0, 1) >= 100);
}

TEST_CASE("variables are not made in bodies, and a body that throws leaves nothing behind") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {1, 2});
  const std::size_t before = graph.store()->size();
  const auto layer = [&] {
    return df::cond(
        df::reduce_sum(x) > 0.0f,
        [&] {
          df::Variable<float> made(graph, df::fill<float>(graph, {1, 2}, 1.0f));
          return x * made.read();
        },
        [&] { return x; });
  };
  CHECK(contains(error_of(layer), "make it outside"));
  const auto thrown = [&] {
    return df::while_loop([&](auto v) { return df::reduce_sum(v) < 1.0f; },
                          [&](auto v) -> decltype(v) { throw std::runtime_error("the user's own"); }, x);
  };
  CHECK_THROWS_WITH(thrown(), "the user's own");
  for (std::size_t i = before; i < graph.store()->size(); ++i) {  // but for the conditions of the calls
    CHECK_FALSE(graph.store()->node(df::NodeId(i)).function.is_valid());
  }
  auto y = df::cond(
      df::reduce_sum(x) > 0.0f, [&] { return x * 2.0f; }, [&] { return -x; });
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(values(session.run({{x, df::Tensor<float>({1, 2}, {1, 2})}}, y)) == std::vector<float>{2, 4});
}

TEST_CASE("an error in a body names its node, and the line of the program that built it") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  const int line = __LINE__ + 2;
  auto y = df::while_loop([&](auto v) { return df::reduce_sum(v) < 100.0f; },
                          [&](auto v) { return df::reshape(v, {3}); }, x, {.shapes = {{df::dynamic}}});
  df::Session session(graph, {.passes = df::testing::each_form()});
  const df::Status status = status_of([&] { return session.run({{x, df::Tensor<float>({2}, {1, 2})}}, y); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.op() == "Reshape");
  CHECK(mentions(status, "while/body/"));
  CHECK(status.where().line() == line);
}

TEST_CASE("a loop whose condition is no truth value says what it is") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2, 3});
  const auto loop = [&](auto condition) {
    return error_of([&] {
      return df::while_loop(
          condition, [](auto v) { return v + 1.0f; }, x);
    });
  };
  CHECK_THAT(loop([](auto v) { return v < 3.0f; }), Catch::Matchers::Contains("a bool of shape [], not bool [2,3]"));
  CHECK_THAT(loop([](auto v) { return df::reduce_sum(v); }), Catch::Matchers::Contains("not float []"));
}

TEST_CASE("a loop ends at the step's deadline and when it is stopped, and the session goes on") {
  df::Graph graph;
  auto go = df::placeholder<bool>(graph, {});
  auto i = df::while_loop([&](auto) { return go; }, [&](auto i) { return i + 1; }, df::constant(graph, 0));
  df::Session session(graph, {.passes = df::testing::each_form()});
  const df::Tensor<bool> yes(true), no(false);
  CHECK(code_of([&] {
          return session.run({.deadline = std::chrono::milliseconds(30)}, {{go, yes}}, i);
        }) == df::Code::deadline_exceeded);
  std::stop_source stop;
  stop.request_stop();
  CHECK(code_of([&] { return session.run({.stop = stop.get_token()}, {{go, yes}}, i); }) == df::Code::cancelled);
  CHECK(session.run({{go, no}}, i).scalar() == 0);
}

TEST_CASE("bodies whose kernels run side by side, and wait, give the same") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {300, 300});
  df::FifoQueue<float> queue(graph, {.capacity = 100, .shapes = {{}}});
  auto put = queue.enqueue(df::constant(graph, 1.0f));
  auto product = std::get<1>(df::while_loop([&](auto i, auto) { return i < 4; },
                                            [&](auto i, auto v) {
                                              auto a = df::matmul(v, x), b = df::matmul(x, v), c = df::matmul(v, v);
                                              auto one = queue.dequeue();
                                              return std::tuple{i + 1, (a + b - c) * one};
                                            },
                                            std::tuple{df::constant(graph, 0), x}));
  std::vector<float> values(300 * 300, 0.0f);
  for (std::size_t i = 0; i < 300; ++i) values[i * 301] = 0.5f;
  const df::Tensor<float> scaled({300, 300}, std::span<const float>(values));
  df::Session session(graph, {.num_threads = 3});
  float expected = 0.5f;
  for (int i = 0; i < 4; ++i) expected = 0.5f * expected + 0.5f * expected - expected * expected;
  for (int run = 0; run < 3; ++run) {
    for (int i = 0; i < 4; ++i) session.run(put);
    CHECK(session.run({{x, scaled}}, product)(299, 299) == Approx(expected));
  }
  CHECK(code_of([&] {
          return session.run({.deadline = std::chrono::milliseconds(30)}, {{x, scaled}}, product);
        }) == df::Code::deadline_exceeded);
}

TEST_CASE("what waits in a body ends when something else of the body fails") {
  df::Graph graph;
  auto place = df::placeholder<std::int32_t>(graph, {});
  auto row = df::constant<float>(graph, {1, 2});
  df::FifoQueue<float> queue(graph, {.capacity = 10, .shapes = {{}}});
  auto put = queue.enqueue(df::constant(graph, 1.0f));
  const auto both = [&] { return df::Output<float>(queue.dequeue() + df::gather(row, place)); };
  auto call = df::function(graph, "both", [&](df::Output<float> v) { return both() * v; })(df::constant(graph, 1.0f));
  auto branch = df::cond(place > 1, both, [&] { return df::Output<float>(df::reduce_sum(row)); });
  auto loop = std::get<1>(df::while_loop([&](auto i, auto) { return i < 3; },
                                         [&](auto i, auto v) {
                                           return std::tuple{i + 1, v + both()};
                                         },
                                         std::tuple{df::constant(graph, 0), df::constant(graph, 0.0f)}));
  const df::Tensor<std::int32_t> wrong(7), right(1);
  for (const bool lowers : {false, true}) {
    for (const int num_threads : {1, 3}) {
      df::Session session(graph, {.num_threads = num_threads, .passes = {.lower_control_flow = lowers}});
      for (const df::Output<float>& value : {call, branch, loop}) {
        CHECK(code_of([&] {
                return session.run({.deadline = std::chrono::seconds(20)}, {{place, wrong}}, value);
              }) == df::Code::invalid_argument);
      }
      for (int i = 0; i < 3; ++i) session.run(put);
      CHECK(session.run({{place, right}}, loop).scalar() == 9);
    }
  }
}
