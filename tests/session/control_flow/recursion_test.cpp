#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <chrono>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

using namespace dflow;

namespace {

using Unary = Output<float>(Output<float>);

Function<Unary> factorial_function(Graph& graph) {
  return recursive_function<Unary>(graph, "factorial", [&](const auto& self, Output<float> n) {
    return cond(
        n < 2.0f, [&] { return Output<float>(ones_like(n)); }, [&] { return Output<float>(n * self(n - 1.0f)); });
  });
}

/// x to the power n, by squares.
Function<Output<float>(Output<float>, Output<std::int32_t>)> power_function(Graph& graph) {
  return recursive_function<Output<float>(Output<float>, Output<std::int32_t>)>(
      graph, "power", [&](const auto& self, Output<float> x, Output<std::int32_t> n) {
        return cond(
            n < 1, [&] { return Output<float>(ones_like(x)); },
            [&] {
              const Output<float> root = self(x, n / 2);
              const Output<float> square = root * root;
              return cond(
                  equal(n % 2, constant(graph, 0)), [&] { return square; }, [&] { return Output<float>(square * x); });
            });
      });
}

std::vector<SessionOptions> all_sessions() {
  std::vector<SessionOptions> all;
  for (const int num_threads : {1, 3}) {
    for (const bool lowers : {false, true}) {
      SessionOptions options;
      options.num_threads = num_threads;
      options.passes.lower_control_flow = lowers;
      all.push_back(options);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("a function calls itself, once and twice", "[recursion]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto factorial = factorial_function(graph);
  const auto fibonacci = recursive_function<Unary>(graph, "fibonacci", [](const auto& self, Output<float> n) {
    return cond(
        n < 2.0f, [&] { return n; }, [&] { return Output<float>(self(n - 1.0f) + self(n - 2.0f)); });
  });
  const auto f = factorial(x), g = fibonacci(x), both = factorial(factorial(x - 3.0f));
  for (const SessionOptions& options : all_sessions()) {
    Session session(graph, options);
    for (int run = 0; run < 3; ++run) {
      CHECK(session.run({{x, 6.0f}}, f).scalar() == 720);
      CHECK(session.run({{x, 15.0f}}, g).scalar() == 610);
      CHECK(session.run({{x, 6.0f}}, both).scalar() == 720);
      const auto [a, b] = session.run({{x, 1.0f}}, f, g);
      CHECK((a.scalar() == 1 && b.scalar() == 1));
    }
  }
}

TEST_CASE("a function that calls itself is differentiated, once and twice", "[recursion]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto n = placeholder<std::int32_t>(graph, {});
  const auto power = power_function(graph);
  const auto y = power(x, n);
  const auto dy = Output<float>(gradients(y, x)), ddy = Output<float>(gradients(dy, x));
  // The derivative of n (n - 1) ... 1 is the product times the sum of 1 / k over all factors k but the last one.
  const auto factorial = factorial_function(graph);
  const auto df_dx = Output<float>(gradients(factorial(x), x));
  for (const SessionOptions& options : all_sessions()) {
    Session session(graph, options);
    for (const int exponent : {0, 1, 2, 7, 10}) {
      const auto k = static_cast<float>(exponent);
      const auto [value, first, second] = session.run({{x, 1.25f}, {n, exponent}}, y, dy, ddy);
      CHECK(value.scalar() == Approx(std::pow(1.25f, k)));
      CHECK(first.scalar() == Approx(k * std::pow(1.25f, k - 1)));
      CHECK(second.scalar() == Approx(k * (k - 1) * std::pow(1.25f, k - 2)));
    }
    CHECK(session.run({{x, 4.0f}}, df_dx).scalar() == Approx(24.0 * (1 / 4.0 + 1 / 3.0 + 1 / 2.0)));
  }
}

TEST_CASE("functions call each other, read what is around them, and give several results", "[recursion]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2});
  const auto n = placeholder<std::int32_t>(graph, {});
  Variable<float> weight(graph, Tensor<float>({2}, {2.0f, 3.0f}), {.name = "weight"});
  using Pair = std::tuple<Output<float>, Output<std::int32_t>>;
  // In turn times the weight and plus x; how many turns of the first kind there were.
  const auto turns = recursive_function<Pair(Output<float>, Output<std::int32_t>)>(
      graph, "even",
      [&](const auto& self, Output<float> v, Output<std::int32_t> k) {
        const auto odd = function(graph, "odd",
                                  [&](Output<float> u, Output<std::int32_t> j) {
                                    return cond(
                                        j < 1, [&] { return Pair(u, j * 0); }, [&] { return self(u + x, j - 1); });
                                  },
                                  {.shapes = {PartialShape({2}), PartialShape({})}});
        return cond(
            k < 1, [&] { return Pair(v, k * 0); },
            [&] {
              const auto [value, count] = odd(v * weight, k - 1);
              return Pair(value, count + 1);
            });
      },
      {.shapes = {PartialShape({2}), PartialShape({})}, .result_shapes = {PartialShape({2}), PartialShape({})}});
  const auto [value, count] = turns(x, n);
  CHECK(value.shape() == PartialShape({2}));
  const auto dx = Output<float>(gradients(value, x)), dw = Output<float>(gradients(value, weight.read()));
  for (const SessionOptions& options : all_sessions()) {
    Session session(graph, options);
    session.run(weight.initializer());
    // ((x w) + x) w = x w^2 + x w
    const auto [v, c, of_x] = session.run({{x, Tensor<float>({2}, {1.0f, 1.0f})}, {n, 3}}, value, count, dx);
    CHECK((v(0) == 6 && v(1) == 12));
    CHECK(c.scalar() == 2);
    CHECK((of_x(0) == 6 && of_x(1) == 12));
  }
  CHECK(dw.is_valid());
}

TEST_CASE("calls nest deep, and not forever", "[recursion]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto down = recursive_function<Unary>(graph, "down", [](const auto& self, Output<float> v) {
    return cond(
        v < 1.0f, [&] { return v; }, [&] { return self(v - 1.0f); });
  });
  const auto last = down(x);
  const auto forever =
      recursive_function<Unary>(graph, "forever", [](const auto& self, Output<float> v) { return self(v + 1.0f); })(x);
  const auto twice = recursive_function<Unary>(graph, "twice", [](const auto& self, Output<float> v) {
    return Output<float>(self(v + 1.0f) + self(v + 2.0f));
  })(x);
  const auto slope = Output<float>(gradients(last, x));
  for (const SessionOptions& options : all_sessions()) {
    Session session(graph, options);
    CHECK(session.run({{x, 2000.5f}}, last).scalar() == 0.5f);
    CHECK(session.run({{x, 1500.5f}}, slope).scalar() == 1);
    for (const auto& endless : {forever, twice}) {
      const Status status = status_of([&] { return session.run({{x, 1.0f}}, endless); });
      CHECK(status.code() == Code::resource_exhausted);
      CHECK(mentions(status, "nested in 4096 others"));
    }
    CHECK(code_of([&] { return session.run({{x, 1.0e9f}}, last); }) == Code::resource_exhausted);
    CHECK(session.run({{x, 3.5f}}, last).scalar() == 0.5f);
  }
  // A deadline is seen on the way.
  Session session(graph);
  CHECK(code_of([&] {
          return session.run({.deadline = std::chrono::milliseconds(0)}, {{x, 2000.0f}}, last);
        }) == Code::deadline_exceeded);
}

TEST_CASE("what a recursive function is said to give it gives", "[recursion]") {
  Graph graph;
  const auto x = constant<float>(graph, {1, 2, 3});
  const std::size_t size = graph.store()->size();
  const auto same = [](const auto& self, Output<float> v) {
    return cond(
        reduce_sum(v) < 1.0f, [&] { return v; }, [&] { return self(v * 0.5f); });
  };
  CHECK(code_of([&] {
          recursive_function<Unary>(graph, "f", same, {.shapes = {PartialShape({3}), PartialShape({3})}});
        }) == Code::invalid_argument);
  CHECK(code_of([&] {
          recursive_function<Unary>(graph, "f", same, {.shapes = {}, .result_shapes = {PartialShape({3})}});
        }) == Code::invalid_argument);
  int n = 0;
  CHECK(code_of([&] {
          recursive_function<Unary>(graph, "f", [&](const auto&, Output<float>) -> Output<float> {
            throw_error(Status::not_found(str_cat("nothing ", ++n)));
          });
        }) == Code::not_found);
  CHECK(graph.store()->size() == size);
  const auto f = recursive_function<Unary>(graph, "f", same,
                                           {.shapes = {PartialShape({3})}, .result_shapes = {PartialShape({3})}});
  CHECK(f(x).shape() == PartialShape({3}));
  CHECK(code_of([&] { f(constant(graph, 1.0f)); }) == Code::invalid_argument);
  Session session(graph);
  CHECK(session.run(f(x))(2) == 3.0f / 8);
}

TEST_CASE("a graph with functions that call themselves is written, read and imported", "[recursion]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}, {.name = "x"});
  const auto scale = x * 2.0f;
  const auto f = recursive_function<Unary>(graph, "f", [&](const auto& self, Output<float> v) {
    return cond(
        v < 1.0f, [&] { return v; }, [&] { return Output<float>(scale * self(v - 1.0f)); });
  });
  const auto y = f(x, {.name = "y"});
  const auto dy = Output<float>(gradients(y, x));
  const GraphDef def = to_graph_def(graph);
  Graph copy = import_graph(def, standard_op_table());
  const Output<float> fed(copy.output("x")), fetched(copy.output("y")), slope(copy.output(dy.name()));
  for (const SessionOptions& options : all_sessions()) {
    Session session(copy, options);
    // (2 x)^2 (x - 2): 8 x^3 - ... its derivative 12 x^2 - 16 x
    const auto [value, derivative] = session.run({{fed, 2.5f}}, fetched, slope);
    CHECK(value.scalar() == 12.5f);
    CHECK(derivative.scalar() == Approx(12 * 6.25 - 16 * 2.5));
  }
  CHECK(to_graph_def(copy).nodes.size() == def.nodes.size());
  // Beside another graph, under a name before its own.
  Graph host;
  const auto own = placeholder<float>(host, {}, {.name = "x"});
  import_graph_into(host, def, standard_op_table(), {.prefix = "twin"});
  const Output<float> twin_x(host.output("twin/x")), twin_slope(host.output("twin/" + dy.name()));
  Session session(host);
  CHECK(session.run({{twin_x, 2.5f}}, twin_slope).scalar() == Approx(12 * 6.25 - 16 * 2.5));
  CHECK(session.run({{own, 2.5f}}, own).scalar() == 2.5f);
}

TEST_CASE("a recursion that stands in a loop, and reads its variables, is differentiated", "[recursion]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}), y = placeholder<float>(graph, {});
  const PartialShape scalar({});
  auto [i, u, v] =
      while_loop([](auto i, auto, auto) { return i < 2; },
                 [&](auto i, auto u, auto v) {
                   const auto f = recursive_function<Output<float>(Output<float>, Output<std::int32_t>)>(
                       graph, "f",
                       [&](const auto& self, Output<float> w, Output<std::int32_t> k) {
                         return cond(
                             k < 1, [&] { return w; }, [&] { return Output<float>(self(w * u, k - 1) + w); });
                       },
                       {.shapes = {scalar, scalar}, .result_shapes = {scalar}});
                   return std::tuple{i + 1, v, f(y, i + 1)};
                 },
                 std::tuple{constant(graph, 0), x, y});
  CHECK(i.is_valid());
  // y + y x, then y + y y + y y^2
  const Output<float> sum = u + v;
  const auto dx = Output<float>(gradients(sum, x)), dy = Output<float>(gradients(sum, y));
  const auto dyy = Output<float>(gradients(dy, y));
  for (const SessionOptions& options : all_sessions()) {
    Session session(graph, options);
    const auto [value, by_x, by_y, twice] = session.run({{x, 0.5f}, {y, 3.0f}}, sum, dx, dy, dyy);
    CHECK(value.scalar() == 3 + 1.5f + 3 + 9 + 27);
    CHECK(by_x.scalar() == 3);
    CHECK(by_y.scalar() == 1.5f + 1 + 6 + 27);
    CHECK(twice.scalar() == 2 + 18);
  }
}

TEST_CASE("a function that calls itself computes with constants, and begins a loop with one", "[recursion]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto n = placeholder<std::int32_t>(graph, {});
  const auto halved = recursive_function<Output<float>(Output<float>, Output<std::int32_t>)>(
      graph, "halved", [&](const auto& self, Output<float> v, Output<std::int32_t> k) {
        const Output<float> half = constant(graph, 1.0f) / constant(graph, 2.0f);
        return cond(
            k < 1, [&] { return v; }, [&] { return Output<float>(self(v * half, k - 1)); });
      });
  // One more for each of the calls that it makes.
  const auto counted = recursive_function<Output<float>(Output<float>, Output<std::int32_t>)>(
      graph, "counted",
      [&](const auto& self, Output<float> v, Output<std::int32_t> k) {
        return Output<float>(std::get<1>(while_loop([&](auto i, auto) { return i < k; },
                                                    [&](auto i, auto u) {
                                                      return std::tuple{i + 1, Output<float>(self(u, k - 1) + 1.0f)};
                                                    },
                                                    std::tuple{constant(graph, 0), v})));
      },
      {.shapes = {PartialShape({}), PartialShape({})}, .result_shapes = {PartialShape({})}});
  const auto half = halved(x, n), count = counted(x, n);
  for (const SessionOptions& options : all_sessions()) {
    Session session(graph, options);
    CHECK(session.run({{x, 8.0f}, {n, 3}}, half).scalar() == 1);
    CHECK(session.run({{x, 0.5f}, {n, 3}}, count).scalar() == 15.5f);
  }
}

TEST_CASE("functions that call others twice are differentiated as far as that is of use", "[recursion][long]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  std::function<Output<float>(Output<float>)> f = [](Output<float> v) { return v * 2.0f; };
  std::vector<Output<float>> levels;
  for (int level = 0; level < 40; ++level) {
    const auto twice = function(graph, str_cat("f", level), [&](Output<float> v) { return f(f(v)); });
    f = [twice](Output<float> v) { return twice(v); };
    levels.push_back(f(x));
  }
  Session session(graph);
  CHECK(session.run({{x, 1.0f}}, Output<float>(gradients(levels[3], x))).scalar() == 65536);
  const std::size_t num_nodes = graph.num_nodes();
  CHECK(code_of([&] { return gradients(levels.back(), x); }) == Code::resource_exhausted);
  CHECK(graph.num_nodes() == num_nodes);
}

namespace {

/// x to the power k, times random numbers in [0.5, 1.5). Each call but the last counts in `calls`.
Output<double> noisy_power(Graph& graph, const Output<double>& x, const Output<std::int32_t>& n,
                           const Variable<std::int64_t>& calls) {
  const auto f = recursive_function<Output<double>(Output<std::int32_t>)>(
      graph, "noisy", [&](const auto& self, Output<std::int32_t> k) {
        return cond(
            k < 1, [&] { return ones_like(x); },
            [&] {
              const auto noise = random_uniform<double>(graph, {}, {.minval = 0.5, .maxval = 1.5});
              return with_dependencies({calls.assign_add(1)}, self(k - 1) * x * noise);
            });
      });
  return f(n);
}

}  // namespace

TEST_CASE("the gradient of a function that calls itself is of the numbers that it drew, and its effects happen once",
          "[recursion]") {
  Graph graph({.seed = 4});
  const auto x = placeholder<double>(graph, {});
  const auto n = placeholder<std::int32_t>(graph, {});
  Variable<std::int64_t> calls(graph, std::int64_t{0});
  const auto y = noisy_power(graph, x, n, calls);
  const auto dy = gradients(y, x), ddy = gradients(dy, x), dddy = gradients(ddy, x);
  for (const SessionOptions& options : all_sessions()) {
    Session session(graph, options);
    session.run(calls.initializer());
    std::int64_t wanted = 0;
    for (const int k : {1, 2, 3, 5}) {
      // y = c x^k
      const auto [value, first] = session.run({{x, 1.0}, {n, k}}, y, dy);
      CHECK(first.scalar() == Approx(k * value.scalar()));
      CHECK(session.run(calls).scalar() == (wanted += k));
      const auto [c, d, dd, ddd] = session.run({{x, 1.0}, {n, k}}, y, dy, ddy, dddy);
      CHECK(d.scalar() == Approx(k * c.scalar()));
      CHECK(dd.scalar() == Approx(k * (k - 1) * c.scalar()));
      CHECK(ddd.scalar() == Approx(k * (k - 1) * (k - 2) * c.scalar()));
      CHECK(session.run(calls).scalar() == (wanted += k));
      static_cast<void>(session.run({{x, 1.0}, {n, k}}, dy));
      CHECK(session.run(calls).scalar() == (wanted += k));
    }
  }
}

TEST_CASE("a recursive network with dropout is differentiated for what it has kept, of two calls in each",
          "[recursion]") {
  // Each call has two calls of its own, and a loop that draws. The values are linear in x.
  Graph graph({.seed = 9});
  const PartialShape vector({8}), scalar({});
  const auto x = placeholder<double>(graph, {8});
  const auto n = placeholder<std::int32_t>(graph, {});
  Variable<std::int64_t> draws(graph, std::int64_t{0});
  const auto tree = recursive_function<Output<double>(Output<double>, Output<std::int32_t>)>(
      graph, "tree",
      [&](const auto& self, Output<double> v, Output<std::int32_t> k) {
        return cond(
            k < 1, [&] { return v; },
            [&] {
              const auto [i, more] =
                  while_loop([](auto i, auto) { return i < 2; },
                             [&](auto i, auto u) {
                               const auto drawn = random_uniform<double>(graph, {8});
                               return std::tuple{i + 1, with_dependencies({draws.assign_add(1)}, u * drawn)};
                             },
                             std::tuple{constant(graph, 0), v});
              static_cast<void>(i);
              return Output<double>(self(dropout(v, 0.5f), k - 1) + self(more, k - 1));
            });
      },
      {.shapes = {vector, scalar}, .result_shapes = {vector}});
  const auto y = tree(x, n), dx = gradients(y, x);
  Tensor<double> at({8});
  for (std::int64_t i = 0; i < 8; ++i) at(i) = 1.0 + static_cast<double>(i);
  for (const SessionOptions& options : all_sessions()) {
    Session session(graph, options);
    session.run(draws.initializer());
    std::int64_t wanted = 0;
    for (const int k : {0, 1, 2, 4}) {
      const auto [value, slope] = session.run({{x, at}, {n, k}}, y, dx);
      for (std::int64_t i = 0; i < 8; ++i) CHECK(slope(i) * at(i) == Approx(value(i)));
      wanted += 2 * ((std::int64_t{1} << k) - 1);
      CHECK(session.run(draws).scalar() == wanted);
    }
  }
}

TEST_CASE("a recursion that draws random numbers is differentiated in a loop, in a copy, and on two devices",
          "[recursion]") {
  Graph graph({.seed = 4});
  const auto x = placeholder<double>(graph, {}, {.name = "x"});
  const auto n = placeholder<std::int32_t>(graph, {}, {.name = "n"});
  const PartialShape scalar({});
  const auto f = recursive_function<Output<double>(Output<double>, Output<std::int32_t>)>(
      graph, "f",
      [&](const auto& self, Output<double> v, Output<std::int32_t> k) {
        return cond(
            k < 1, [&] { return v; },
            [&] {
              const auto there = graph.device("/cpu:1");
              return Output<double>(self(v * random_uniform<double>(graph, {}, {.minval = 0.5, .maxval = 1.5}), k - 1) *
                                    x);
            });
      },
      {.shapes = {scalar, scalar}, .result_shapes = {scalar}});
  // x^(2 n) times what was drawn
  const auto [i, y] = while_loop([](auto i, auto) { return i < 2; },
                                 [&](auto i, auto v) {
                                   return std::tuple{i + 1, f(v, n)};
                                 },
                                 std::tuple{constant(graph, 0), constant(graph, 1.0)});
  static_cast<void>(i);
  const auto dy = gradients(y, x), ddy = gradients(dy, x);
  const auto check = [](const Graph& of, const Output<double>& x_of, const Output<std::int32_t>& n_of,
                        const Output<double>& value, const Output<double>& first, const Output<double>& second) {
    for (SessionOptions options : all_sessions()) {
      options.num_cpu_devices = 2;
      Session session(of, options);
      for (const int k : {0, 1, 2, 4}) {
        const auto [c, d, dd] = session.run({{x_of, 1.0}, {n_of, k}}, value, first, second);
        CHECK(d.scalar() == Approx(2 * k * c.scalar()));
        CHECK(dd.scalar() == Approx(2 * k * (2 * k - 1) * c.scalar()));
      }
    }
  };
  check(graph, x, n, y, dy, ddy);
  Graph read = import_graph(to_graph_def(graph), standard_op_table());
  check(read, Output<double>(read.output("x")), Output<std::int32_t>(read.output("n")),
        Output<double>(read.output(y.name())), Output<double>(read.output(dy.name())),
        Output<double>(read.output(ddy.name())));
  Graph host;
  static_cast<void>(placeholder<double>(host, {}, {.name = "x"}));
  const MergedGraph merged = merge(host, graph, {.prefix = "twin"});
  check(host, merged(x), merged(n), merged(y), merged(dy), merged(ddy));
}
