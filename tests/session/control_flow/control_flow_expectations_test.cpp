// Expected values of control flow that TensorFlow's tests publish: python/kernel_tests/control_flow_ops_py_test.py and
// python/kernel_tests/functional_ops_test.py, version 0.8. The names of tests come from the first file; only numbers
// are taken from both.
#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

using Real32 = df::Output<float>;
using Whole = df::Output<std::int32_t>;

struct PublishedProgram {
  std::string name;
  /// Edges of floats, with the values that they give in order.
  std::function<std::vector<df::AnyOutput>(df::Graph&)> build;
  std::vector<float> wanted;
};

Real32 number(df::Graph& graph, float of) { return df::constant(graph, of); }
Real32 numbers(df::Graph& graph, std::vector<float> of) {
  return df::constant(graph, df::Tensor<float>({static_cast<std::int64_t>(of.size())}, of));
}

/// v = v * v while it is below 100.
Real32 squared(const Real32& v) {
  return df::while_loop([](auto x) { return x < 100.0f; }, [](auto x) { return df::square(x); }, v);
}
/// v = v * 2, `count` times.
Real32 doubled(df::Graph& graph, const Real32& v, int count) {
  return std::get<1>(df::while_loop([&](auto i, auto) { return i < count; },
                                    [](auto i, auto x) {
                                      return std::tuple{i + 1, x * 2.0f};
                                    },
                                    std::tuple{df::constant(graph, 0), v}));
}

std::vector<PublishedProgram> published_gradients_of_loops() {
  using Edges = std::vector<df::AnyOutput>;
  std::vector<PublishedProgram> all;
  const auto add = [&](const char* name, std::vector<float> wanted, std::function<Edges(df::Graph&)> build) {
    all.push_back({name, std::move(build), std::move(wanted)});
  };
  add("WhileGrad_Square", {1024}, [](df::Graph& graph) {
    auto v = number(graph, 2);
    auto r = squared(v);
    auto y = df::cond(
        number(graph, 1) < 2.0f, [&] { return r; }, [&] { return v; });
    return Edges{df::gradients(y, v)};
  });
  add("WhileGrad_MultipleUses, WhileGrad_LoopAdd", {524288, 2048}, [](df::Graph& graph) {
    auto v = number(graph, 2);
    auto r = squared(v);
    return Edges{df::gradients(r * r, v), df::gradients(r + r, v)};
  });
  add("WhileGrad_Shape", {810, 2560}, [](df::Graph& graph) {
    auto x = df::identity(numbers(graph, {3, 4}));
    auto r = std::get<1>(df::while_loop([](auto i, auto) { return i < 5; },
                                        [&](auto i, auto v) {
                                          return std::tuple{i + 1, Real32(x * v)};
                                        },
                                        std::tuple{df::constant(graph, 0), numbers(graph, {2})},
                                        {.shapes = {df::Shape{}, {df::dynamic}}}));
    return Edges{df::gradients(r, x)};
  });
  add("WhileGrad_BaseShape", {2, 4}, [](df::Graph& graph) {
    auto x = numbers(graph, {1, 2});
    auto r = df::while_loop([&](auto) { return df::constant(graph, false); }, [&](auto v) { return Real32(v * x); },
                            numbers(graph, {2, 2}));
    const Edges ys{r, df::square(x)}, xs{x};
    return Edges{df::densify(df::gradients(ys, xs)[0], x)};
  });
  for (const std::int64_t parallel : {1, 10}) {
    add("WhileGrad_Mul", {216, 81}, [parallel](df::Graph& graph) {
      auto a = number(graph, 3), v = number(graph, 2);
      auto r = df::while_loop([](auto x) { return x < 100.0f; }, [&](auto x) { return Real32(x * a); }, v,
                              {.parallel_iterations = parallel});
      auto [da, dv] = df::gradients(r, a, v);
      return Edges{da, dv};
    });
  }
  add("WhileGrad_ys_xs", {304, 124, 295, 120}, [](df::Graph& graph) {
    auto x = number(graph, 3), y = number(graph, 2);
    auto [rx, ry] = df::while_loop([](auto u, auto) { return u < 100.0f; },
                                   [](auto u, auto v) {
                                     const Real32 sum = u + v;
                                     return std::tuple{Real32(u * sum), sum};
                                   },
                                   std::tuple{x, y});
    auto [both_x, both_y] = df::gradients(Real32(rx + ry), x, y);
    auto [first_x, first_y] = df::gradients(rx, x, y);
    return Edges{both_x, both_y, first_x, first_y};
  });
  add("WhileGrad_Dependency", {1024}, [](df::Graph& graph) {
    auto x = number(graph, 2);
    return Edges{df::gradients(doubled(graph, x, 10), x)};
  });
  add("WhileGrad_NoDependency", {1, 1, 1, 1, 1, 1}, [](df::Graph& graph) {
    auto x = df::fill<float>(graph, {2, 3}, 1.0f);
    auto r = std::get<2>(df::while_loop([](auto i, auto, auto) { return i < 10; },
                                        [](auto i, auto u, auto) {
                                          return std::tuple{i + 1, u, u};
                                        },
                                        std::tuple{df::constant(graph, 0), x, x}));
    return Edges{df::gradients(df::reduce_sum(r), x)};
  });
  add("WhileGrad_Const", {0}, [](df::Graph& graph) {
    auto c0 = number(graph, 0), c1 = number(graph, 1);
    auto r = std::get<1>(df::while_loop([](auto i, auto) { return i < 1; },
                                        [&](auto i, auto) {
                                          return std::tuple{i + 1, c1};
                                        },
                                        std::tuple{df::constant(graph, 0), c0}));
    return Edges{df::gradients(r, c0)};
  });
  add("WhileGrad_SerialTwoLoops, WhileGrad_ParallelTwoLoops", {1024, 64}, [](df::Graph& graph) {
    auto x = number(graph, 2);
    return Edges{df::gradients(doubled(graph, doubled(graph, x, 5), 5), x),
                 df::gradients(doubled(graph, x, 5) + doubled(graph, x, 5), x)};
  });
  add("WhileGrad_OneOutputWithControlDependencyOnSecond", {2, 1}, [](df::Graph& graph) {
    auto x = number(graph, 1), y = number(graph, 1);
    auto [i, last_x, last_y] = df::while_loop([](auto i, auto, auto) { return i < 1; },
                                              [](auto i, auto u, auto v) {
                                                return std::tuple{i + 1, df::identity(u), Real32(u + v)};
                                              },
                                              std::tuple{df::constant(graph, 0), x, y});
    const auto after = graph.control_dependencies({last_x.operation()});
    auto result = df::identity(last_y);
    return Edges{result, df::gradients(result, x)};
  });
  add("NestedWhileGrad_Simple", {8}, [](df::Graph& graph) {
    auto v = number(graph, 1);
    const auto inner = [](const Real32& s) {
      return df::while_loop([](auto x) { return x < 4.0f; }, [](auto x) { return x * 2.0f; }, s);
    };
    auto r = df::while_loop([](auto x) { return x < 2.0f; }, [&](auto x) { return inner(x) * 2.0f; }, v);
    return Edges{df::gradients(r, v)};
  });
  add("NestedWhileGrad_SerialInner, NestedWhileGrad_ParallelInner", {256, 512}, [](df::Graph& graph) {
    auto v = number(graph, 1);
    auto serial = df::while_loop([](auto x) { return x < 128.0f; },
                                 [&](auto x) { return doubled(graph, doubled(graph, x, 4), 4); }, v);
    auto parallel = df::while_loop([](auto x) { return x < 128.0f; },
                                   [&](auto x) { return doubled(graph, x, 4) * doubled(graph, x, 4); }, v);
    return Edges{df::gradients(serial, v), df::gradients(parallel, v)};
  });
  add("WhileCondGrad_Simple", {1024}, [](df::Graph& graph) {
    auto v = number(graph, 2), n = number(graph, 100), one = number(graph, 1);
    auto r =
        df::while_loop([&](auto x) { return x < n; },
                       [&](auto x) {
                         return df::cond(
                             df::constant(graph, true), [&] { return df::square(x); }, [&] { return Real32(x - one); });
                       },
                       v);
    return Edges{df::gradients(r, v)};
  });
  add("CallGradInLoop", {600}, [](df::Graph& graph) {
    auto params = number(graph, 5);
    auto square = df::square(params);
    return Edges{std::get<1>(df::while_loop([](auto i, auto) { return i < 10; },
                                            [&](auto i, auto x) {
                                              auto data = numbers(graph, {1, 2, 3}) * square;
                                              return std::tuple{i + 1, Real32(x + df::gradients(data, params))};
                                            },
                                            std::tuple{df::constant(graph, 0), number(graph, 0)}))};
  });
  add("WhileGrad_StopGrad", {0, 156}, [](df::Graph& graph) {
    auto x = number(graph, 3), y = number(graph, 2);
    auto r = std::get<0>(df::while_loop([](auto u, auto) { return u < 100.0f; },
                                        [](auto u, auto v) {
                                          const Real32 next = df::stop_gradient(df::square(v));
                                          return std::tuple{Real32(df::square(u) + next), next};
                                        },
                                        std::tuple{x, y}));
    auto [dy, dx] = df::gradients(r, y, x);
    return Edges{dy, dx};
  });
  return all;
}

std::vector<PublishedProgram> published_branches() {
  using Edges = std::vector<df::AnyOutput>;
  std::vector<PublishedProgram> all;
  const auto add = [&](const char* name, std::vector<float> wanted, std::function<Edges(df::Graph&)> build) {
    all.push_back({name, std::move(build), std::move(wanted)});
  };
  add("Cond_1, Cond_2, Cond_3", {11, 9, 12}, [](df::Graph& graph) {
    auto x = number(graph, 10), one = number(graph, 1);
    const auto more = [&] { return Real32(x + 1.0f); };
    const auto less = [&] { return Real32(x - 1.0f); };
    const auto nested = [&] { return Real32(df::cond(one < 2.0f, more, less) + 1.0f); };
    return Edges{df::cond(one < 2.0f, more, less), df::cond(one < 0.0f, more, less),
                 df::cond(one < 2.0f, nested, less)};
  });
  add("Cond_5", {4}, [](df::Graph& graph) {
    auto alive = df::constant(graph, true);
    auto count = df::constant(graph, 0);
    for (int i = 0; i < 10; ++i) {
      std::tie(alive, count) = df::cond(
          alive,
          [&] {
            return std::tuple{df::Output<bool>(df::constant(graph, i) < 3), Whole(count + 1)};
          },
          [&] {
            return std::tuple{alive, count};
          });
    }
    return Edges{df::cast<float>(count)};
  });
  add("Cond_7", {11, 12}, [](df::Graph& graph) {
    auto x = number(graph, 10), y = number(graph, 200);
    auto [a, b] = df::cond(
        number(graph, 1) < 2.0f,
        [&] {
          return std::tuple{Real32(x + 1.0f), Real32(x + 2.0f)};
        },
        [&] {
          return std::tuple{y, y};
        });
    return Edges{a, b};
  });
  add("CondGrad_1, CondGrad_2", {1, 42, 3}, [](df::Graph& graph) {
    auto x = number(graph, 10);
    const auto same = [&] { return df::identity(x); };
    Edges slopes{df::gradients(df::cond(number(graph, 1) < 2.0f, same, same), x)};
    for (const float c : {1.0f, 3.0f}) {
      auto r = df::cond(
          df::identity(number(graph, c)) < 2.0f, [&] { return Real32(x * 42.0f); }, [&] { return Real32(x * 3.0f); });
      slopes.push_back(df::gradients(r, x));
    }
    return slopes;
  });
  add("NestedCond_Simple", {1, 1}, [](df::Graph& graph) {
    auto x = number(graph, 0);
    const auto same = [&] { return x; };
    Edges slopes;
    for (const bool first : {true, false}) {
      auto y = df::cond(df::constant(graph, first), same, [&] { return df::cond(x < 1.0f, same, same); });
      slopes.push_back(df::gradients(y, x));
    }
    return slopes;
  });
  add("CondGrad_Gather", {1, 1, 0, 2}, [](df::Graph& graph) {
    auto v = numbers(graph, {1, 42});
    Edges slopes;
    for (const float c : {1.0f, 3.0f}) {
      auto r = df::cond(
          number(graph, c) < 2.0f, [&] { return df::identity(v); },
          [&] {
            return df::gather(v, df::constant(graph, df::Tensor<std::int32_t>({2}, {1, 1})));
          });
      slopes.push_back(df::gradients(r, v));
    }
    return slopes;
  });
  add("ExampleCond", {4, 2 * std::sqrt(2.0f)}, [](df::Graph& graph) {
    auto x = numbers(graph, {-2, 2});
    Edges norms;
    for (const int d : {1, 2}) {
      norms.push_back(df::cond(
          df::equal(df::constant(graph, d), 2), [&] { return df::sqrt(df::reduce_sum(df::square(x))); },
          [&] { return df::reduce_sum(df::abs(x)); }));
    }
    return norms;
  });
  return all;
}

std::vector<PublishedProgram> published_loops() {
  using Edges = std::vector<df::AnyOutput>;
  std::vector<PublishedProgram> all;
  const auto add = [&](const char* name, std::vector<float> wanted, std::function<Edges(df::Graph&)> build) {
    all.push_back({name, std::move(build), std::move(wanted)});
  };
  const auto counted = [](const Whole& from) {
    return df::while_loop([](auto i) { return i < 10; }, [](auto i) { return i + 1; }, from);
  };
  add("While_1, CondWhile_1, CondWhile_2", {10000, 10, 10}, [counted](df::Graph& graph) {
    auto zero = df::constant(graph, 0);
    auto many = df::while_loop([](auto i) { return i < 10000; }, [](auto i) { return i + 1; }, zero,
                               {.parallel_iterations = 20});
    auto then = df::cond(
        df::constant(graph, true), [&] { return counted(zero); }, [&] { return zero; });
    auto otherwise = df::cond(
        df::constant(graph, false), [&] { return Whole(zero + 1); }, [&] { return counted(zero); });
    return Edges{df::cast<float>(many), df::cast<float>(then), df::cast<float>(otherwise)};
  });
  add("While_3", {10100}, [](df::Graph& graph) {
    auto zero = df::constant(graph, 0);
    auto o = std::get<3>(df::while_loop([](auto i, auto, auto, auto) { return i < 100; },
                                        [](auto i, auto m, auto c, auto o) {
                                          const Whole next_m = m + 1, next_c = c + 1;
                                          return std::tuple{i + 1, next_m, next_c, Whole(o + next_m + next_c)};
                                        },
                                        std::tuple{zero, zero, zero, zero}));
    return Edges{df::cast<float>(o)};
  });
  add("While_4, While_5", {42, 0, 1, 2, 3, 4, 5, 6}, [](df::Graph& graph) {
    auto x = numbers(graph, {1, 2, 3, 4, 5, 6});
    auto zero = df::constant(graph, 0);
    auto [i, sum, rows] = df::while_loop(
        [](auto i, auto, auto) { return i < 6; },
        [&](auto i, auto sum, auto rows) {
          const Real32 row = df::gather(x, df::expand_dims(i, 0));
          return std::tuple{i + 1, Real32(sum + 2.0f * df::gather(x, i)), df::concat(0, {rows, row})};
        },
        std::tuple{zero, number(graph, 0), numbers(graph, {0})}, {.shapes = {df::Shape{}, df::Shape{}, {df::dynamic}}});
    return Edges{sum, rows};
  });
  add("NestedWhile_1", {225}, [](df::Graph& graph) {
    auto zero = df::constant(graph, 0);
    const auto sum = [&] {
      return std::get<1>(df::while_loop([](auto i, auto) { return i < 10; },
                                        [](auto i, auto s) {
                                          return std::tuple{i + 1, Whole(i + s)};
                                        },
                                        std::tuple{zero, zero}));
    };
    return Edges{df::cast<float>(
        df::while_loop([](auto x) { return x < 200; }, [&](auto x) { return Whole(x + sum()); }, zero))};
  });
  add("WhileWithControl_1, WhileWithControl_2", {12, 12}, [](df::Graph& graph) {
    auto zero = df::constant(graph, 0);
    const auto twelve_after = [&](const Whole& r) {
      const auto after = graph.control_dependencies({r.operation()});
      return df::constant(graph, 12);
    };
    auto first = std::get<1>(df::while_loop([](auto n, auto) { return n < 10; },
                                            [&](auto n, auto r) {
                                              return std::tuple{n + 1, twelve_after(r)};
                                            },
                                            std::tuple{zero, zero}, {.parallel_iterations = 1}));
    auto second = df::while_loop([](auto r) { return r < 10; }, [&](auto r) { return twelve_after(r); }, zero);
    return Edges{df::cast<float>(first), df::cast<float>(second)};
  });
  add("While_NestedInput", {100, 1, 102, 3, 204}, [](df::Graph& graph) {
    auto [a, b, c, d, e] = df::while_loop(
        [](auto a, auto, auto, auto, auto) { return a < 100.0f; },
        [](auto a, auto b, auto c, auto d, auto e) {
          return std::tuple{Real32(a + 1.0f), b, Real32(c + 1.0f), d, Real32(e + 2.0f)};
        },
        std::tuple{number(graph, 0), number(graph, 1), number(graph, 2), number(graph, 3), number(graph, 4)});
    return Edges{a, b, c, d, e};
  });
  add("WhileStack_1", {45}, [](df::Graph& graph) {
    auto [i, pushed] =
        df::while_loop([](auto i, auto) { return i < 10; },
                       [](auto i, auto stack) {
                         return std::tuple{i + 1, stack.push(i)};
                       },
                       std::tuple{df::constant(graph, 0), df::TensorStack<std::int32_t>(graph, df::Shape{})});
    auto sum = std::get<2>(df::while_loop([](auto i, auto, auto) { return i > 0; },
                                          [](auto i, auto stack, auto x) {
                                            auto [rest, top] = stack.pop();
                                            return std::tuple{i - 1, rest, Whole(x + top)};
                                          },
                                          std::tuple{i, pushed, df::constant(graph, 0)}));
    return Edges{df::cast<float>(sum)};
  });
  // functional_ops_test.py: a fold of (a + x) * 2, from the first element and from 10; running products; their
  // gradient.
  add("foldl, foldr", {208, 880, 450, 1282}, [](df::Graph& graph) {
    auto x = numbers(graph, {1, 2, 3, 4, 5, 6});
    const auto f = [](auto a, auto e) { return Real32((a + e) * 2.0f); };
    return Edges{df::foldl(f, numbers(graph, {2, 3, 4, 5, 6}), number(graph, 1)), df::foldl(f, x, number(graph, 10)),
                 df::foldr(f, numbers(graph, {1, 2, 3, 4, 5}), number(graph, 6)), df::foldr(f, x, number(graph, 10))};
  });
  add("map, scan", {8, 10, 12, 14, 16, 18, 2, 4, 12, 48, 240, 1440, 873}, [](df::Graph& graph) {
    auto x = numbers(graph, {1, 2, 3, 4, 5, 6});
    auto v = number(graph, 2);
    auto products = df::scan([](auto a, auto e) { return Real32(a * e); }, x, v);
    return Edges{df::map([](auto e) { return Real32((e + 3.0f) * 2.0f); }, x), products, df::gradients(products, v)};
  });
  return all;
}

void check_published(const std::vector<PublishedProgram>& programs) {
  for (const PublishedProgram& program : programs) {
    df::Graph graph;
    const std::vector<df::AnyOutput> edges = program.build(graph);
    for (const bool lowers : {false, true}) {
      for (const bool raises : {false, true}) {
        INFO(program.name << ", lowered: " << lowers << ", raised: " << raises);
        df::PassOptions passes;
        passes.lower_control_flow = lowers;
        passes.raise_control_flow = raises;
        // Otherwise all constants would be computed while the step is compiled.
        passes.constant_folding = raises;
        df::Session session(graph, {.passes = passes});
        std::vector<df::AnyTensor> results(edges.size());
        session.run_erased({}, nullptr, {}, edges, {}, results);
        std::vector<float> got;
        for (const df::AnyTensor& each : results) {
          for (const float value : each.span<float>()) got.push_back(value);
        }
        CHECK(got == program.wanted);
      }
    }
  }
}

}  // namespace

TEST_CASE("gradients of loops are what TensorFlow's tests publish") { check_published(published_gradients_of_loops()); }

TEST_CASE("branches and their gradients are what TensorFlow's tests publish") { check_published(published_branches()); }

TEST_CASE("loops, maps, folds and scans are what TensorFlow's tests publish") { check_published(published_loops()); }

TEST_CASE("loops update variables and fill queues as TensorFlow's tests publish") {
  for (const bool lowers : {false, true}) {
    INFO("lowered: " << lowers);
    df::PassOptions passes;
    passes.lower_control_flow = lowers;
    df::Graph graph;
    df::Variable<float> a(graph, number(graph, 0), {.name = "a"}), b(graph, number(graph, 0), {.name = "b"});
    df::Variable<float> select(graph, numbers(graph, {3, 4, 5}), {.name = "select"});
    df::Variable<float> factor(graph, number(graph, 3), {.name = "factor"});
    df::FifoQueue<std::int32_t> queue(graph, {.shapes = {df::Shape{}}});
    auto zero = df::constant(graph, 0);
    const auto loop = [&](int count, const auto& act) {
      return df::while_loop([&](auto i) { return i < count; },
                            [&](auto i) { return df::with_dependencies({df::Operation(act(i))}, i + 1); }, zero,
                            {.parallel_iterations = 1});
    };
    // WhileUpdateVariable_1
    auto updated = loop(3, [&](auto i) { return select.scatter_update(df::expand_dims(i, 0), numbers(graph, {10})); });
    // WhileUpdateVariable_4: the added value is computed once, before the loop.
    auto once = [&] {
      const auto after = graph.control_dependencies({df::Operation(a.assign_add(1.0f))});
      return a.read();
    }();
    auto ten_of_b = loop(10, [&](auto) { return b.assign_add(once); });
    // WhileUpdateVariable_6: 1 + 2 + ... + 10.
    auto sums = loop(10, [&](auto) {
      const auto after = graph.control_dependencies({df::Operation(a.assign_add(1.0f))});
      return b.assign_add(a.read());
    });
    // WhileUpdateVariable_5: the condition reads the variable that the body updates.
    auto until = df::while_loop([&](auto) { return b.read() < 10.0f; },
                                [&](auto) {
                                  const df::Operation both[] = {a.assign_add(1.0f), b.assign_add(1.0f)};
                                  const auto after = graph.control_dependencies({both[0], both[1]});
                                  return b.read();
                                },
                                b.read());
    // WhileQueue_1
    auto filled = loop(10, [&](auto i) { return queue.enqueue(i); });
    auto taken = queue.dequeue();
    // WhileGrad_Variable
    auto grown =
        df::while_loop([](auto x) { return x < 100.0f; }, [&](auto x) { return Real32(x * factor); }, number(graph, 2));
    auto slope = df::gradients(grown, factor);
    df::Session session(graph, {.passes = passes});
    const auto anew = [&] { session.run(df::initialize_variables(graph)); };
    const auto value = [&](const auto& of) { return session.run(of).scalar(); };
    anew();
    CHECK(value(updated) == 3);
    for (const float each : session.run(select)) CHECK(each == 10);
    CHECK(value(ten_of_b) == 10);
    CHECK(value(a) == 1);
    CHECK(value(b) == 10);
    anew();
    CHECK(value(sums) == 10);
    CHECK(value(a) == 10);
    CHECK(value(b) == 55);
    anew();
    CHECK(value(until) == 10);
    CHECK(value(a) == 10);
    CHECK(value(b) == 10);
    CHECK(value(filled) == 10);
    for (int i = 0; i < 10; ++i) CHECK(value(taken) == i);
    CHECK(value(slope) == 216);
  }
}
