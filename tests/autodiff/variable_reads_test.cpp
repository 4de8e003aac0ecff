#include <dflow/autodiff/gradients.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <cstdint>
#include <tuple>
#include <vector>

using namespace dflow;

namespace {

/// Two variables, and steps that know which way a branch goes.
struct ReadVariables {
  Graph graph;
  Variable<float> w{graph, 3.0f}, v{graph, 5.0f};
  Output<bool> way = placeholder<bool>(graph, {});

  /// The gradients of y by w and by v.
  std::vector<float> gradients_of(const Output<float>& y, bool on_way = true) {
    const auto [of_w, of_v] = gradients(y, w, v);
    Session session(graph);
    session.run(initialize_variables(graph));
    const auto [a, b] = session.run({{way, Tensor<bool>(on_way)}}, of_w, of_v);
    return {a(), b()};
  }
};

}  // namespace

TEST_CASE("every read of a variable counts for its gradient, and a read that waits for something for itself alone") {
  Graph graph;
  const Variable<float> w(graph, Tensor<float>({3}, {1, 2, 3})), other(graph, Tensor<float>({3}, {5, 5, 5}));
  const auto rows_of = [&](const std::vector<std::int32_t>& rows) {
    return constant(graph, Tensor<std::int32_t>({static_cast<std::int64_t>(rows.size())}, rows));
  };
  const auto first = w.read(), second = w.read();
  Output<float> after;
  {
    const auto done = graph.control_dependencies({first.operation()});
    after = w.read();
  }
  const auto y = reduce_sum(w * 2.0f) + reduce_sum(square(first)) + reduce_sum(gather(second, rows_of({1, 1}))) +
                 reduce_sum(after * 10.0f) + reduce_sum(other.read());
  Session session(graph);
  session.run(initialize_variables(graph));
  const auto [of_w, of_other] = gradients(y, w, other);
  CHECK(session.run(of_w).span()[0] == 2 + 2 + 10);
  CHECK(session.run(of_w).span()[1] == 2 + 4 + 2 + 10);
  CHECK(session.run(of_other).span()[2] == 1);
  CHECK(session.run(gradients(y, second)).span()[1] == 2 + 4 + 2 + 10);  // it stands for the variable as well
  CHECK(session.run(gradients(y, after)).span()[1] == 10);
  // Both at once, and one of them twice.
  const auto several = gradients(y, std::vector<Output<float>>{w, second, after, w});
  CHECK(session.run(several[0]).span()[1] == 18);
  CHECK(session.run(several[1]).span()[1] == 18);
  CHECK(session.run(several[2]).span()[1] == 10);
  CHECK(session.run(several[3]).span()[1] == 18);
  // Rows of several reads stay rows.
  const auto rows = reduce_sum(gather(w.read(), rows_of({0}))) + reduce_sum(gather(w.read(), rows_of({2})));
  const AnyOutput xs[] = {w, w}, ys[] = {rows};
  const std::vector<Gradient> twice = gradients(ys, xs);
  REQUIRE(twice[1].slices.has_value());
  CHECK(session.run(densify(twice[0], w).as<float>()).span()[2] == 1);
  // The whole of a loss may be built on reads.
  const Operation step = train::GradientDescent(0.5f).minimize(reduce_sum(w.read() * 4.0f));
  session.run(step);
  CHECK(session.run(w).span()[0] == -1);
}

TEST_CASE("reads of a variable in branches count, beside the variable itself or alone") {
  ReadVariables of;
  auto& [graph, w, v, way] = of;
  const auto mixed = cond(
      way, [&] { return w.read() * 2.0f; }, [&] { return w * 4.0f + v; });
  CHECK(of.gradients_of(mixed, true) == std::vector<float>{2, 0});
  CHECK(of.gradients_of(mixed, false) == std::vector<float>{4, 1});
  const auto around = cond(
                          way, [&] { return w.read() * 2.0f + w.read() * w; }, [&] { return v.read() + 0.0f; }) +
                      w.read() * 100.0f;
  CHECK(of.gradients_of(around, true) == std::vector<float>{108, 0});
  CHECK(of.gradients_of(around, false) == std::vector<float>{100, 1});
  const auto alone = cond(
      way, [&] { return w.read() * 7.0f; }, [&] { return v.read() * w.read(); });
  CHECK(of.gradients_of(alone, true) == std::vector<float>{7, 0});
  CHECK(of.gradients_of(alone, false) == std::vector<float>{5, 3});
  const auto nested = cond(
      way,
      [&] {
        return cond(
                   way, [&] { return w.read() * v.read(); }, [&] { return v.read(); }) *
               w;
      },
      [&] { return v.read(); });
  CHECK(of.gradients_of(nested, true) == std::vector<float>{30, 9});
}

TEST_CASE("reads of a variable in loops and functions count, to second order") {
  ReadVariables of;
  auto& [graph, w, v, way] = of;
  const auto [i, power] = while_loop([&](auto n, auto) { return n < 3; },
                                     [&](auto n, auto x) {
                                       return std::tuple{n + 1, x * w.read()};
                                     },
                                     std::tuple{constant(graph, 0), constant(graph, 2.0f)});
  CHECK(of.gradients_of(power) == std::vector<float>{54, 0});
  CHECK(of.gradients_of(gradients(power, w)) == std::vector<float>{36, 0});
  const auto f = function(graph, "f", [&](Output<float> x) { return x * w.read() * w.read(); });
  CHECK(of.gradients_of(f(v.read())) == std::vector<float>{30, 9});
  CHECK(of.gradients_of(f(w)) == std::vector<float>{27, 0});
  CHECK(of.gradients_of(f(w.read()) + w) == std::vector<float>{28, 0});
  CHECK(of.gradients_of(f(f(v))) == std::vector<float>{4 * 27 * 5, 81});
}
