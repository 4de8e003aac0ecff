// Edges that bodies may read, wait for and give.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <tuple>

namespace df = dflow;

TEST_CASE("a variable that changes its element type or its shape is an error of the line that built the loop") {
  df::Graph graph;
  auto one = df::constant(graph, df::Tensor<float>({1, 2}, {1, 2}));
  auto rows = df::placeholder<float>(graph, {df::dynamic, 2});
  const df::AnyOutput number = df::constant(graph, 1.0f);
  const auto always = [&](const auto&) { return df::constant(graph, true); };
  const auto twice = [](const auto& x) { return df::concat(0, {x, x}); };
  const auto append = [](auto state, auto) { return df::concat(0, {state, state}); };
  const std::size_t before = graph.num_nodes();
  const auto refused = [&](std::uint32_t line, const char* text, const auto& build) {
    const df::Status status = status_of(build);
    INFO(status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, text));
    CHECK(status.where().line() == line);
    CHECK(contains(status.where().file_name(), "body_edges_test.cpp"));
    CHECK(graph.num_nodes() == before);
  };
  refused(__LINE__, "with shape [1,2] and leaves it with [2,2]", [&] { return df::while_loop(always, twice, one); });
  constexpr const char* foldl = "foldl: state 0 enters an iteration with shape [1,2] and leaves it with [2,2]";
  refused(__LINE__, foldl, [&] { return df::foldl(append, rows, one); });
  constexpr const char* foldr = "foldr: state 1 enters an iteration with shape [1,2] and leaves it with [2,2]";
  const auto append_second = [](auto states, auto row) {
    const auto& [first, second] = states;
    return std::tuple{first + row, df::concat(0, {second, second})};
  };
  refused(__LINE__, foldr, [&] { return df::foldr(append_second, rows, std::tuple{one, one}); });
  constexpr const char* scan = "scan: state 0 enters an iteration with shape [1,2] and leaves it with [2,2]";
  refused(__LINE__, scan, [&] { return df::scan(append, rows, one); });
  constexpr const char* declared = "foldl: state 0 begins with shape [1,2], which is not of the declared [3,?]";
  refused(__LINE__, declared, [&] { return df::foldl(append, rows, one, {.shapes = {{3, df::dynamic}}}); });
  const auto unknown = [&](const auto&) { return df::Output<float>(rows); };
  refused(__LINE__, "with shape [1,2] and leaves it with [?,2]", [&] { return df::while_loop(always, unknown, one); });
  // Here element types are known only at run time; with typed edges it does not compile.
  const auto goes_on = [&](std::span<const df::AnyOutput>) {
    return df::detail::BodyResults{{df::constant(graph, true)}, {}};
  };
  const auto to_double = [&](std::span<const df::AnyOutput> v) {
    return df::detail::BodyResults{{df::cast<double>(df::Output<float>(v[0]))}, {}};
  };
  const df::At here{.name = "loop"};
  refused(here.where.line(), "variable 0 enters an iteration as float and leaves it as double", [&] {
    return df::detail::any_loop({&number, 1}, goes_on, to_double, {}, here);
  });
}

TEST_CASE("what waits for the argument of a body runs in it") {
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  const auto after = [&](const auto& edge, int value) {
    const auto waits = graph.control_dependencies({edge.operation()});
    return df::constant(graph, value);
  };
  auto [i, last] = df::while_loop([&](auto i, auto) { return i < n; },
                                  [&](auto i, auto last) {
                                    return std::tuple{i + 1, after(last, 12)};
                                  },
                                  std::tuple{df::constant(graph, 0), df::constant(graph, 7)});
  auto f = df::function(graph, "f", [&](df::Output<std::int32_t> v) { return after(v, 3); });
  auto called = f(n);
  for (const bool lowers : {false, true}) {
    df::PassOptions passes;
    passes.lower_control_flow = lowers;
    df::Session session(graph, {.passes = passes});
    for (const int count : {0, 1, 4}) {
      const auto [a, b] = session.run({{n, df::Tensor<std::int32_t>(count)}}, last, called);
      CHECK(a.scalar() == (count == 0 ? 7 : 12));
      CHECK(b.scalar() == 3);
    }
  }
}

TEST_CASE("a constant whose value a body has is not fed") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto a = df::constant(graph, 3.0f, {.name = "a"}), given = df::constant(graph, 3.0f);
  auto y = df::while_loop([](auto v) { return v < 100.0f; }, [&](auto v) { return df::Output<float>(v * a); }, x);
  auto through = df::identity(given);
  auto z = df::while_loop([](auto v) { return v < 100.0f; }, [&](auto v) { return df::Output<float>(v * through); }, x);
  df::Session session(graph);
  const df::Tensor<float> two(2.0f), ten(10.0f);
  CHECK(session.run({{x, two}}, y).scalar() == 162);
  const df::Status status = status_of([&] { session.run({{x, two}, {a, ten}}, y); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.node() == "a");
  CHECK(mentions(status, "identity"));
  CHECK(session.run({{x, two}, {given, ten}}, z).scalar() == 200);
  CHECK(session.run({{x, two}, {a, ten}}, x * a).scalar() == 20);
}
