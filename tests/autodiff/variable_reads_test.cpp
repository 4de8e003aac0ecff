#include <dflow/autodiff/gradients.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

using namespace dflow;

namespace {

/// The parts of a function of w = 3 and v = 5.
struct FunctionOfVariables {
  Graph graph;
  Variable<double> w{graph, 3.0}, v{graph, 5.0};
  Output<bool> way = placeholder<bool>(graph, {});

  double value(const Output<double>& y, double of_w, double of_v, bool on_way) {
    Session session(graph);
    session.run(initialize_variables(graph));
    session.run(w.assign(constant(graph, of_w)));
    session.run(v.assign(constant(graph, of_v)));
    return session.run({{way, Tensor<bool>(on_way)}}, y)();
  }
};

/// The function's gradients, and their gradients, are equal to finite differences.
void check_reads(const std::function<Output<double>(FunctionOfVariables&)>& build) {
  FunctionOfVariables of;
  const auto differs = [&](const Output<double>& y) {
    const auto [of_w, of_v] = gradients(y, of.w, of.v);
    constexpr double step = 1e-4;
    for (const bool way : {true, false}) {
      INFO("on its " << (way ? "first" : "second") << " way");
      const auto quotient = [&](double dw, double dv) {
        return (of.value(y, 3 + dw, 5 + dv, way) - of.value(y, 3 - dw, 5 - dv, way)) / (2 * step);
      };
      CHECK(of.value(of_w, 3, 5, way) == Approx(quotient(step, 0)).epsilon(1e-5).margin(1e-6));
      CHECK(of.value(of_v, 3, 5, way) == Approx(quotient(0, step)).epsilon(1e-5).margin(1e-6));
    }
  };
  const Output<double> y = build(of);
  differs(y);
  INFO("second order");
  differs(gradients(y, of.w));
}

/// Three times.
template <class Body>
Output<double> three_times(Graph& graph, const Output<double>& first, Body body) {
  return std::get<1>(while_loop([](auto n, auto) { return n < 3; },
                                [&](auto n, auto x) {
                                  return std::tuple{n + 1, body(x)};
                                },
                                std::tuple{constant(graph, 0), first}));
}

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

TEST_CASE("reads of a variable in branches count once, however they get there") {
  using Of = FunctionOfVariables;
  check_reads([](Of& of) {
    return cond(
        of.way, [&] { return of.w.read() * 2.0; }, [&] { return of.w * 4.0 + of.v; });
  });
  check_reads([](Of& of) {
    const auto r = of.w.read();
    return cond(
        of.way, [&] { return of.w * 2.0 + r * 4.0; }, [&] { return of.v * 1.0; });
  });
  check_reads([](Of& of) {
    const auto r = of.w.read();
    return cond(
        of.way, [&] { return r * 4.0 + of.w.read() * 2.0; }, [&] { return of.v.read() * of.w.read(); });
  });
  check_reads([](Of& of) {
    const auto r = of.w.read(), other = of.w.read();
    return cond(
        of.way, [&] { return r * 4.0 + other * 2.0; }, [&] { return other * of.v; });
  });
  check_reads([](Of& of) {
    return cond(
               of.way, [&] { return of.w.read() * 2.0 + of.w.read() * of.w; }, [&] { return of.v.read(); }) +
           of.w.read() * 100.0;
  });
  check_reads([](Of& of) {
    return cond(
        of.way,
        [&] {
          const auto r = of.w.read();
          return cond(
                     of.way, [&] { return r * of.w.read() * of.w; }, [&] { return r * 1.0; }) *
                 r;
        },
        [&] { return of.w * 1.0; });
  });
  check_reads([](Of& of) {
    return cond(
        of.way, [&] { return of.w.read(); }, [&] { return Output<double>(of.w); });
  });
}

TEST_CASE("reads of a variable in loops count once, however they get there") {
  using Of = FunctionOfVariables;
  check_reads([](Of& of) { return three_times(of.graph, of.v, [&](auto x) { return x * of.w.read() + of.w; }); });
  check_reads([](Of& of) {
    const auto r = of.w.read();
    return three_times(of.graph, of.v, [&](auto x) { return x * r + of.w; });
  });
  check_reads([](Of& of) { return three_times(of.graph, of.w, [&](auto x) { return x * of.w.read(); }); });
  check_reads([](Of& of) {
    return three_times(of.graph, of.v, [&](auto x) {
      const auto r = of.w.read();
      return three_times(of.graph, x, [&](auto z) { return z * r * 0.2 + of.w.read() + of.w; }) * of.w.read() * 0.1;
    });
  });
  check_reads([](Of& of) {  // a condition's count for nothing
    return std::get<1>(while_loop([&](auto n, auto x) { return n < 3 && x < of.w.read() * 1000.0; },
                                  [&](auto n, auto x) {
                                    return std::tuple{n + 1, x * of.v.read()};
                                  },
                                  std::tuple{constant(of.graph, 0), Output<double>(of.w)}));
  });
}

TEST_CASE("reads of a variable in functions count once, however they get there") {
  using Of = FunctionOfVariables;
  check_reads([](Of& of) {
    const auto f = function(of.graph, "f", [&](Output<double> x) { return x * of.w.read() * of.w; });
    return f(of.w) + f(of.v.read()) * of.w;
  });
  check_reads([](Of& of) {
    const auto r = of.w.read();
    const auto f = function(of.graph, "f", [&](Output<double> x) { return x * r * of.w.read(); });
    return f(r);
  });
  check_reads([](Of& of) {
    const auto r = of.w.read();
    const auto f = function(of.graph, "f", [&](Output<double> x) { return x * r; });
    const auto h = function(of.graph, "h", [&](Output<double> x) { return f(x) * of.w; });
    return h(of.v) + f(f(of.v));
  });
  check_reads([](Of& of) {
    const auto f =
        function(of.graph, "f", [&](Output<double> x) { return x * of.w.read() * of.w; }, {.is_inlined = true});
    return f(of.v) * f(of.w);
  });
  check_reads([](Of& of) {
    const auto r = of.w.read();
    const auto f = recursive_function<Output<double>(Output<double>, Output<double>)>(
        of.graph, "power", [&](const auto& self, Output<double> n, Output<double> x) {
          return cond(
              n < 1.0, [&] { return x * of.w; }, [&] { return self(n - 1.0, x * r) + of.w.read(); });
        });
    return f(constant(of.graph, 2.0), of.v);
  });
}

TEST_CASE("nothing flows to a read that is stopped, and gates and sums in turn change nothing") {
  Graph graph;
  const Variable<float> w(graph, 3.0f), v(graph, 5.0f);
  const auto r = w.read();
  const auto value_of = [&](const Output<float>& edge) {
    Session session(graph);
    session.run(initialize_variables(graph));
    return session.run(edge)();
  };
  const Output<float> stopped = w * 2.0f + r * 3.0f;
  const AnyOutput xs[] = {w}, of_stopped[] = {stopped}, stops[] = {r};
  CHECK(value_of(densify(gradients(of_stopped, xs, {.stop_gradients = stops})[0], w).as<float>()) == 2);
  const auto y = w * 2.0f + r * 3.0f + w.read() * w.read() +
                 cond(
                     constant(graph, true), [&] { return w.read() * w * 2.0f; }, [&] { return w.read() * 1.0f; });
  const AnyOutput ys[] = {y};
  for (const auto aggregation : {GradientAggregation::add_n, GradientAggregation::accumulate}) {
    const auto all = gradients(ys, xs, {.aggregation = aggregation, .gate_gradients = true});
    CHECK(value_of(densify(all[0], w).as<float>()) == 2 + 3 + 6 + 12);
  }
}

TEST_CASE("xs may be a vector of variables, and in braces") {
  Graph graph;
  const std::vector<Variable<float>> weights{Variable<float>(graph, 2.0f), Variable<float>(graph, 4.0f)};
  const auto y = weights[0] * weights[1].read();
  Session session(graph);
  session.run(initialize_variables(graph));
  const std::vector<Output<float>> all = gradients(y, weights);
  CHECK(session.run(all[0])() == 4);
  CHECK(session.run(all[1])() == 2);
  CHECK(session.run(gradients(y, {weights[1], weights[0]})[0])() == 2);
}
