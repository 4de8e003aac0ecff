// Branches and loops whose bodies are functions of the graph.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "errors.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
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
  df::Session session(graph);
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
  df::Session session(graph);
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
  df::Session session(graph);
  const float expected[] = {3, 9, -3, -3, -3};
  for (const int i : {0, 1, 2, 3, -1}) {
    const df::Tensor<std::int32_t> index(i);
    CHECK(session.run({{which, index}}, y).scalar() == expected[i < 0 ? 4 : i]);
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
  df::Session session(graph);
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
  auto million = df::while_loop([&](auto k) { return k < 1'000'000; },
                                [&](auto k) {
                                  return df::cond(
                                      k < 0, [&] { return k + 2; }, [&] { return k + 1; });
                                },
                                df::constant(graph, 0));
  df::Session session(graph);
  int expected = 0;
  for (int a = 0; a < 10; ++a) {
    for (int b = 0; b <= a; ++b) expected += a * b;
  }
  CHECK(session.run({{n, df::Tensor<std::int32_t>(10)}}, sum).scalar() == expected);
  CHECK(session.run(million).scalar() == 1'000'000);
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
  df::Session session(graph);
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
  df::Session session(graph);
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

TEST_CASE("variables are not made in bodies, and a body that throws leaves nothing behind") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {1, 2});
  const std::size_t before = graph.store()->size();
  const auto layer = [&] {
    return df::cond(
        df::reduce_sum(x) > 0.0f, [&] { return df::dense(x, 2); }, [&] { return x; });
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
  df::Session session(graph);
  CHECK(values(session.run({{x, df::Tensor<float>({1, 2}, {1, 2})}}, y)) == std::vector<float>{2, 4});
}

TEST_CASE("an error in a body names its node, and the line of the program that built it") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  const int line = __LINE__ + 1;
  auto y = df::while_loop([&](auto v) { return df::reduce_sum(v) < 100.0f; },
                          [&](auto v) { return df::reshape(v, {3}); }, x, {.shapes = {{df::dynamic}}});
  df::Session session(graph);
  const df::Status status = status_of([&] { return session.run({{x, df::Tensor<float>({2}, {1, 2})}}, y); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.op() == "Reshape");
  CHECK(mentions(status, "while/body/"));
  CHECK(status.where().line() == line);
}

TEST_CASE("a loop ends at the step's deadline and when it is stopped, and the session goes on") {
  df::Graph graph;
  auto go = df::placeholder<bool>(graph, {});
  auto i = df::while_loop([&](auto) { return go; }, [&](auto i) { return i + 1; }, df::constant(graph, 0));
  df::Session session(graph);
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

TEST_CASE("functions are saved with their graph, and imported under other names beside it") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  auto [i, y] =
      df::while_loop([&](auto i, auto) { return i < 3; },
                     [&](auto i, auto v) {
                       return std::tuple{i + 1, df::cond(
                                                    v > 10.0f, [&] { return v - x; }, [&] { return v * 3.0f; })};
                     },
                     std::tuple{df::constant(graph, 0), x}, {}, {.name = "y"});
  const df::GraphDef def = df::to_graph_def(graph);
  CHECK(def.version == df::GraphDef::functions_version);
  const auto run = [](df::Graph& of, const std::string& prefix) {
    const auto edge = [&](const std::string& name, std::int32_t output) {
      return df::Output<float>(df::AnyOutput(of.store(), {of.store()->find(prefix + name), output}));
    };
    df::Session session(of);
    return session.run({{edge("x", 0), df::Tensor<float>(4.0f)}}, edge("y", 1)).scalar();
  };
  const float expected = 24;  // 4, 12, 8, 24
  CHECK(run(graph, "") == expected);
  const std::string binary = df::to_binary(def);
  const std::vector<df::GraphDef> forms{df::from_binary(std::as_bytes(std::span<const char>(binary))),
                                        df::from_json(df::to_json(def))};
  for (const df::GraphDef& read : forms) {
    CHECK(read == def);
    df::Graph copy = df::import_graph(read, df::standard_op_table());
    CHECK(run(copy, "") == expected);
    df::import_graph_into(copy, read, df::standard_op_table(), {.prefix = "again"});
    CHECK(run(copy, "again/") == expected);
    df::GraphDef shuffled = read;
    std::reverse(shuffled.nodes.begin(), shuffled.nodes.end());
    df::Graph other = df::import_graph(shuffled, df::standard_op_table());
    CHECK(run(other, "") == expected);
  }
  df::GraphDef old = def;
  old.version = 1;
  CHECK(contains(error_of([&] { return df::to_binary(old); }), "has no functions"));
}

TEST_CASE("a graph whose functions are wrong is refused, when it is imported or when it runs") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  auto y = df::cond(
      x > 0.0f, [&] { return x * 2.0f; }, [&] { return -x; }, {.name = "y"});
  const df::GraphDef def = df::to_graph_def(graph);
  const auto node = [](df::GraphDef& of, std::string_view op, int which = 0) -> df::NodeDef& {
    for (df::NodeDef& each : of.nodes) {
      if (each.op == op && which-- == 0) return each;
    }
    throw std::out_of_range("no such node");
  };
  const auto imported = [&](const auto& change) {
    df::GraphDef changed = def;
    change(changed);
    return status_of([&] {
      df::Graph copy = df::import_graph(changed, df::standard_op_table());
      df::Session session(copy);
      const auto edge = [&](const char* name) {
        return df::Output<float>(df::AnyOutput(copy.store(), {copy.store()->find(name), 0}));
      };
      return session.run({{edge("x"), df::Tensor<float>(4.0f)}}, edge("y"));
    });
  };
  CHECK(imported([](auto&) {}).ok());
  CHECK(mentions(imported([&](auto& of) { node(of, "Mul").function = ""; }), "no value outside of it"));
  CHECK(mentions(imported([&](auto& of) { node(of, "Mul").function = "x"; }), "'x' is no function"));
  CHECK(mentions(imported([&](auto& of) { node(of, "Mul").function = "nowhere"; }), "is not in the graph"));
  CHECK(mentions(imported([&](auto& of) { node(of, "If").attrs[0].second = df::FunctionName{"nowhere"}; }),
                 "has no function 'nowhere'"));
  CHECK(mentions(imported([&](auto& of) { node(of, "If").inputs.resize(1); }), "'x'"));
  CHECK(mentions(imported([&](auto& of) { node(of, "FunctionResults", 1).function = "y/then"; }), "results"));
  CHECK(mentions(imported([&](auto& of) { node(of, "FunctionResults").inputs.clear(); }), "gives 0 results"));
  CHECK(mentions(imported([&](auto& of) { node(of, "FunctionResults").inputs.push_back("x"); }), "gives 2 results"));
  CHECK(mentions(imported([&](auto& of) {
                   df::NodeDef& begin = of.nodes.emplace_back();
                   begin.name = "lonely";
                   begin.op = "Function";
                   node(of, "If").attrs[0].second = df::FunctionName{"lonely"};
                 }),
                 "is not finished"));
}

TEST_CASE("gradients go through the branch that is taken, to all that it reads, and twice") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto w = df::placeholder<float>(graph, {});
  // x > 0: exp(w x), else w^2 x^3.
  auto y = df::cond(
      x > 0.0f, [&] { return df::exp(w * x); },
      [&] {
        auto square = x * x;
        return w * w * square * x;
      });
  auto [gx, gw] = df::gradients(y * 2.0f, x, w);
  auto gxw = df::gradients(gx, w);
  auto gxx = df::gradients(gx, x);
  df::Session session(graph);
  const auto at = [&](float x_value, float w_value) {
    const auto [a, b, c, d] =
        session.run({{x, df::Tensor<float>(x_value)}, {w, df::Tensor<float>(w_value)}}, gx, gw, gxw, gxx);
    return std::vector<float>{a.scalar(), b.scalar(), c.scalar(), d.scalar()};
  };
  const float e = std::exp(0.5f * 2.0f);
  const std::vector<float> taken = at(2.0f, 0.5f), other = at(-2.0f, 0.5f);
  const float wanted_taken[] = {2 * 0.5f * e, 2 * 2 * e, 2 * (e + 0.5f * 2 * e), 2 * 0.25f * e};
  const float wanted_other[] = {2 * 0.25f * 3 * 4, 2 * 2 * 0.5f * -8, 2 * 2 * 0.5f * 3 * 4, 2 * 0.25f * 6 * -2};
  for (std::size_t i = 0; i < 4; ++i) {
    INFO(i);
    CHECK(taken[i] == Approx(wanted_taken[i]));
    CHECK(other[i] == Approx(wanted_other[i]));
  }
}

TEST_CASE("gradients go through loops of any number of iterations, to variables and captures") {
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  auto x = df::placeholder<float>(graph, {2});
  auto w = df::placeholder<float>(graph, {2});
  // x w^n, by a body that keeps what it has made, and sums that on the way.
  auto [i, power, sum] = df::while_loop([&](auto i, auto, auto) { return i < n; },
                                        [&](auto i, auto power, auto sum) {
                                          auto next = power * w;
                                          return std::tuple{i + 1, next, sum + df::reduce_sum(next * next)};
                                        },
                                        std::tuple{df::constant(graph, 0), x, df::constant(graph, 0.0f)});
  auto [gx, gw] = df::gradients(df::reduce_sum(power), x, w);
  auto [sx, sw] = df::gradients(sum, x, w);
  df::Session session(graph);
  const std::vector<float> xs{1.5f, -2}, ws{0.5f, 3};
  for (const int count : {0, 1, 2, 5}) {
    INFO(count);
    const auto [a, b, c, d] = session.run({{n, df::Tensor<std::int32_t>(count)},
                                           {x, df::Tensor<float>({2}, std::span<const float>(xs))},
                                           {w, df::Tensor<float>({2}, std::span<const float>(ws))}},
                                          gx, gw, sx, sw);
    for (int k = 0; k < 2; ++k) {
      const double of_x = xs[static_cast<std::size_t>(k)], of_w = ws[static_cast<std::size_t>(k)];
      CHECK(a(k) == Approx(std::pow(of_w, count)));
      CHECK(b(k) == Approx(count == 0 ? 0 : of_x * count * std::pow(of_w, count - 1)));
      double by_x = 0, by_w = 0;
      for (int j = 1; j <= count; ++j) {
        by_x += 2 * of_x * std::pow(of_w, 2 * j);
        by_w += of_x * of_x * 2 * j * std::pow(of_w, 2 * j - 1);
      }
      CHECK(c(k) == Approx(by_x));
      CHECK(d(k) == Approx(by_w));
    }
  }
}

TEST_CASE("gradients go through loops in loops, branches in loops and loops in branches") {
  df::Graph graph;
  auto x = df::placeholder<double>(graph, {});
  const auto zero = df::constant(graph, 0);
  // For i in 0..3: v = v > 1 ? v / x : the last of (v += x v^2), twice.
  auto nested = df::cond(
      x > 0.0,
      [&] {
        return std::get<1>(df::while_loop([&](auto i, auto) { return i < 4; },
                                          [&](auto i, auto v) {
                                            auto next = df::cond(
                                                v > 1.0, [&] { return v / x; },
                                                [&] {
                                                  return std::get<1>(
                                                      df::while_loop([&](auto j, auto) { return j < 2; },
                                                                     [&](auto j, auto u) {
                                                                       return std::tuple{j + 1, u + x * u * u};
                                                                     },
                                                                     std::tuple{zero, v}));
                                                });
                                            return std::tuple{i + 1, next};
                                          },
                                          std::tuple{zero, x * 0.5}));
      },
      [&] { return df::exp(x); });
  auto gradient = df::gradients(nested, x);
  df::Session session(graph);
  const auto f = [](double at) {
    if (at <= 0) return std::exp(at);
    double v = at * 0.5;
    for (int i = 0; i < 4; ++i) {
      if (v > 1) {
        v /= at;
      } else {
        for (int j = 0; j < 2; ++j) v += at * v * v;
      }
    }
    return v;
  };
  for (const double at : {-0.5, 0.3, 0.9, 1.3, 2.7}) {
    INFO(at);
    const auto [value, slope] = session.run({{x, df::Tensor<double>(at)}}, nested, gradient);
    CHECK(value.scalar() == Approx(f(at)));
    CHECK(slope.scalar() == Approx((f(at + 1e-6) - f(at - 1e-6)) / 2e-6).epsilon(1e-5));
  }
}

TEST_CASE("a gradient keeps of random draws what the branch has drawn, and nothing runs twice") {
  df::Graph graph({.seed = 7});
  auto x = df::placeholder<float>(graph, {4});
  df::Variable<float> count(graph, df::Tensor<float>(0.0f), {.trainable = false});
  auto y = df::while_loop([&](auto v) { return df::reduce_sum(df::abs(v)) < 10.0f; },
                          [&](auto v) {
                            auto one = count.assign_add(1.0f);
                            const auto after = graph.control_dependencies({one});
                            return v * (df::random_uniform<float>(graph, {4}) + 1.5f);
                          },
                          x);
  auto gx = df::gradients(y, x);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const df::Tensor<float> at({4}, {0.5f, -0.25f, 1, 2});
  const auto [value, slope] = session.run({{x, at}}, y, gx);
  for (int i = 0; i < 4; ++i) CHECK(slope(i) * at(i) == Approx(value(i)));
  const float once = session.run(count).scalar();
  CHECK(once >= 1);
  CHECK(once <= 4);
}

TEST_CASE("a loop cannot be differentiated twice, and says so") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto y = df::while_loop([&](auto v) { return v < 10.0f; }, [&](auto v) { return v * x; }, x);
  auto gx = df::gradients(y, x);
  const df::Status status = status_of([&] { return df::gradients(gx, x); });
  CHECK(status.code() == df::Code::unimplemented);
}

TEST_CASE("a function is built once and called often, with what it sees, and has gradients") {
  df::Graph graph;
  auto a = df::placeholder<float>(graph, {});
  auto b = df::placeholder<float>(graph, {});
  df::Variable<float> w(graph, df::Tensor<float>(3.0f), {.name = "w"});
  int num_built = 0;
  auto scaled = df::function(graph, "scaled_norm", [&](df::Output<float> x, df::Output<float> y) {
    ++num_built;
    return std::tuple{w * df::sqrt(x * x + y * y), x - y};
  });
  CHECK(scaled.name() == "scaled_norm");
  const auto [norm, difference] = scaled(a, b);
  const auto again = std::get<0>(scaled(norm, difference));
  auto summed =
      df::while_loop([&](auto v) { return v < 1000.0f; }, [&](auto v) { return std::get<0>(scaled(v, b)); }, a);
  CHECK(num_built == 1);
  const auto [ga, gb, gw] = df::gradients(again, a, b, w);
  auto ga_b = df::gradients(ga, b);
  auto gs = df::gradients(summed, a);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto f = [](double x, double y, double v) {
    const double n = v * std::sqrt(x * x + y * y);
    return v * std::sqrt(n * n + (x - y) * (x - y));
  };
  const auto loop = [](double x, double y) {
    while (x < 1000) x = 3 * std::sqrt(x * x + y * y);
    return x;
  };
  const auto run = [&](const auto& edge) {
    return session.run({{a, df::Tensor<float>(2.0f)}, {b, df::Tensor<float>(0.5f)}}, edge).scalar();
  };
  constexpr double h = 1e-4;
  CHECK(run(again) == Approx(f(2, 0.5, 3)));
  CHECK(run(summed) == Approx(loop(2, 0.5)));
  CHECK(run(ga) == Approx((f(2 + h, 0.5, 3) - f(2 - h, 0.5, 3)) / (2 * h)));
  CHECK(run(gb) == Approx((f(2, 0.5 + h, 3) - f(2, 0.5 - h, 3)) / (2 * h)));
  CHECK(run(gw) == Approx((f(2, 0.5, 3 + h) - f(2, 0.5, 3 - h)) / (2 * h)));
  CHECK(run(gs) == Approx((loop(2 + h, 0.5) - loop(2 - h, 0.5)) / (2 * h)));
  const double mixed =
      (f(2 + h, 0.5 + h, 3) - f(2 + h, 0.5 - h, 3) - f(2 - h, 0.5 + h, 3) + f(2 - h, 0.5 - h, 3)) / (4 * h * h);
  CHECK(run(ga_b) == Approx(mixed).epsilon(1e-3));
}

TEST_CASE("arguments of a function have the shapes that it declares") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  const auto twice = [](df::Output<float> v) { return df::matmul(v, v, {.transpose_b = true}); };
  auto gram = df::function(graph, "gram", twice, {.shapes = {{df::dynamic, 3}}});
  auto y = gram(x);
  CHECK(y.shape().rank() == 2);
  CHECK(contains(error_of([&] {
                   return gram(df::constant(graph, df::Tensor<float>({2, 2}, {1, 2, 3, 4})));
                 }),
                 "argument 0 of function 'gram' has shape [2,2], not [?,3]"));
  CHECK(contains(error_of([&] {
                   return df::function(graph, "gram", twice, {.shapes = {{3}, {3}}});
                 }),
                 "2 shapes are declared for 1 arguments"));
  df::Session session(graph);
  CHECK(values(session.run({{x, df::Tensor<float>({1, 3}, {1, 2, 3})}}, y)) == std::vector<float>{14});
}

TEST_CASE("calls of one function run in three threads at once") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto grow = df::function(graph, "grow", [](df::Output<float> v) {
    return df::while_loop([](auto u) { return u < 1e6f; }, [](auto u) { return u * 1.5f; }, v);
  });
  auto y = grow(x) + grow(x * 2.0f);
  df::Session session(graph);
  auto step = session.prepare(df::feeds(x), df::fetches(y));
  const auto grown = [](float v) {
    while (v < 1e6f) v *= 1.5f;
    return v;
  };
  std::vector<std::thread> threads;
  std::atomic<int> num_wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i <= 200; ++i) {
        const auto v = static_cast<float>(i + t);
        num_wrong += step(df::Tensor<float>(v)).scalar() != grown(v) + grown(v * 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_wrong == 0);
}

TEST_CASE("functions that call each other twice cost what they say, and nested too deep they are refused") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto f = df::function(graph, "f", [](df::Output<float> v) { return v + 1.0f; });
  for (int level = 0; level < 18; ++level) {
    f = df::function(graph, "f", [f](df::Output<float> v) { return f(f(v)); });
  }
  auto y = f(x);
  df::Session session(graph);
  CHECK(session.run({{x, df::Tensor<float>(0.0f)}}, y).scalar() == 1 << 18);
  // Twice as many levels would be 4^18 bodies, if calls did not share them.
  for (int level = 0; level < 22; ++level) {
    f = df::function(graph, "f", [f](df::Output<float> v) {
      return df::cond(
          v < 0.0f, [&] { return f(f(v)); }, [&] { return v; });
    });
  }
  CHECK(session.run({{x, df::Tensor<float>(3.0f)}}, f(x)).scalar() == 3);
  for (int level = 0; level < 300; ++level) {
    f = df::function(graph, "f", [f](df::Output<float> v) { return f(v); });
  }
  CHECK(code_of([&] { return session.run({{x, df::Tensor<float>(0.0f)}}, f(x)); }) == df::Code::resource_exhausted);
}

TEST_CASE("a body sends and receives nothing") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  const std::string task = "/job:localhost/replica:0/task:0/device:CPU:0";
  auto y = df::cond(
      x > 0.0f,
      [&] {
        return df::Output<float>(df::build<df::Recv>(*graph.store(), {},
                                                     {.tensor_name = "t", .send_device = task, .recv_device = task}, {},
                                                     df::type_args<float>()));
      },
      [&] { return x; });
  df::Session session(graph);
  CHECK(code_of([&] { return session.run({{x, df::Tensor<float>(1.0f)}}, y); }) == df::Code::unimplemented);
}
