// Gradients of branches and loops.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/control_flow_forms.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

namespace df = dflow;

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
  df::Session session(graph, {.passes = df::testing::each_form()});
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
  // x w^n, by a body that keeps its values and sums them on the way.
  auto [i, power, sum] = df::while_loop([&](auto i, auto, auto) { return i < n; },
                                        [&](auto i, auto power, auto sum) {
                                          auto next = power * w;
                                          return std::tuple{i + 1, next, sum + df::reduce_sum(next * next)};
                                        },
                                        std::tuple{df::constant(graph, 0), x, df::constant(graph, 0.0f)});
  auto [gx, gw] = df::gradients(df::reduce_sum(power), x, w);
  auto [sx, sw] = df::gradients(sum, x, w);
  df::Session session(graph, {.passes = df::testing::each_form()});
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
  df::Session session(graph, {.passes = df::testing::each_form()});
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
  df::Session session(graph, {.passes = df::testing::each_form()});
  session.run(df::initialize_variables(graph));
  const df::Tensor<float> at({4}, {0.5f, -0.25f, 1, 2});
  const auto [value, slope] = session.run({{x, at}}, y, gx);
  for (int i = 0; i < 4; ++i) CHECK(slope(i) * at(i) == Approx(value(i)));
  const float once = session.run(count).scalar();
  CHECK(once >= 1);
  CHECK(once <= 4);
}

TEST_CASE("gradients are those by constants, too, that bodies read, and functions that these call") {
  df::Graph graph;
  auto x = df::placeholder<double>(graph, {});
  auto a = df::constant(graph, 3.0), unread = df::constant(graph, 1.0);
  auto scaled = df::function(graph, "scaled", [&](df::Output<double> v) { return df::Output<double>(v * a); });
  const auto body = [&](auto v) {
    return df::cond(
        v > 1.0, [&] { return scaled(scaled(v)); }, [&] { return df::Output<double>(v + a * a); });
  };
  auto loop = df::while_loop([](auto v) { return v < 100.0; }, body, x);
  auto y = loop * a;
  auto [dx, da, none] = df::gradients(y, x, a, unread);
  auto second = df::gradients(da, a);
  // x = 0: 0, a^2, a^4, a^6 = 729; the result is a^7.
  for (const bool lowers : {false, true}) {
    df::PassOptions passes;
    passes.lower_control_flow = lowers;
    df::Session session(graph, {.passes = passes});
    const auto [of_y, of_dx, of_da, of_none, of_second] =
        session.run({{x, df::Tensor<double>(0.0)}}, y, dx, da, none, second);
    CHECK(of_y.scalar() == Approx(std::pow(3, 7)));
    CHECK(of_dx.scalar() == Approx(std::pow(3, 5)));
    CHECK(of_da.scalar() == Approx(7 * std::pow(3, 6)));
    CHECK(of_none.scalar() == 0);
    CHECK(of_second.scalar() == Approx(42 * std::pow(3, 5)));
  }
}

TEST_CASE("a constant that a recursion reads has the gradient that one has which it is given, of every order") {
  df::Graph graph;
  auto a = df::constant(graph, 2.0f), b = df::constant(graph, 3.0f);
  const auto power_of = [&](df::Output<float> base, df::Output<float> last) {
    return df::recursive_function<df::Output<float>(df::Output<float>)>(
        graph, "power", [&](const auto& self, df::Output<float> n) {
          return df::cond(
              n < 1.0f, [&] { return df::Output<float>(last * 1.0f); },
              [&] { return df::Output<float>(base * self(n - 1.0f)); });
        });
  };
  auto n = df::constant(graph, 5.0f);
  for (const auto& y :
       {power_of(a, b)(n), power_of(df::identity(a), b)(n), power_of(a, df::identity(b))(n)}) {  // a^5 b
    auto [da, db] = df::gradients(y, a, b);
    auto daa = df::gradients(da, a), dab = df::gradients(da, b), dba = df::gradients(db, a), dbb = df::gradients(db, b);
    df::Session session(graph);
    const auto [of_y, of_a, of_b, of_aa, of_ab, of_ba, of_bb] = session.run(y, da, db, daa, dab, dba, dbb);
    CHECK(of_y.scalar() == 96);
    CHECK(of_a.scalar() == 240);
    CHECK(of_b.scalar() == 32);
    CHECK(of_aa.scalar() == 480);
    CHECK(of_ab.scalar() == 80);
    CHECK(of_ba.scalar() == 80);
    CHECK(of_bb.scalar() == 0);
  }
}

TEST_CASE("functions that call one another have gradients by constants that one of them reads") {
  df::Graph graph;
  auto a = df::constant(graph, 2.0), unread = df::constant(graph, 1.0);
  auto x = df::placeholder<double>(graph, {});
  using Of = df::Output<double>(df::Output<double>, df::Output<double>);
  const auto f = df::recursive_function<Of>(graph, "f", [&](const auto& self, auto v, auto n) {
    const auto scaled = df::function(graph, "scaled", [&](df::Output<double> u) { return df::Output<double>(u * a); });
    const auto next = [&] { return self(scaled(v), n - 1.0); };
    return df::cond(
        n < 1.0, [&] { return df::Output<double>(v + a); },
        [&] {
          return df::cond(
              df::equal(n, df::constant(graph, 2.0)), [&] { return df::Output<double>(next() * next()); }, next);
        });
  });
  auto y = f(x, df::constant(graph, 4.0));  // (x a^4 + a)^2
  auto [dx, da, none] = df::gradients(y, x, a, unread);
  auto daa = df::gradients(da, a);
  df::Session session(graph);
  const auto [of_y, of_x, of_a, of_none, of_aa] = session.run({{x, df::Tensor<double>(0.5)}}, y, dx, da, none, daa);
  const double root = 0.5 * 16 + 2, slope = 0.5 * 32 + 1, bend = 0.5 * 48;
  CHECK(of_y.scalar() == Approx(root * root));
  CHECK(of_x.scalar() == Approx(2 * root * 16));
  CHECK(of_a.scalar() == Approx(2 * root * slope));
  CHECK(of_none.scalar() == 0);
  CHECK(of_aa.scalar() == Approx(2 * slope * slope + 2 * root * bend));
}

TEST_CASE("a loop is differentiated three times") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto y = df::while_loop([&](auto v) { return v < 10.0f; }, [&](auto v) { return v * x; }, x);  // x^4 at 2
  auto first = df::gradients(y, x);
  auto second = df::gradients(first, x);
  auto third = df::gradients(second, x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  for (int run = 0; run < 3; ++run) {
    const auto [a, b, c] = session.run({{x, df::Tensor<float>(2.0f)}}, first, second, third);
    CHECK(a.scalar() == 32);
    CHECK(b.scalar() == 48);
    CHECK(c.scalar() == 48);
  }
}

TEST_CASE("gradients go through a variable that grows") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {1, 2});
  auto rows = std::get<1>(df::while_loop([](auto i, auto) { return i < 3; },
                                         [&](auto i, auto rows) {
                                           return std::tuple{i + 1, df::concat(0, {rows * 2.0f, x})};
                                         },
                                         std::tuple{df::constant(graph, 0), df::identity(x)},
                                         {.shapes = {df::Shape{}, {df::dynamic, 2}}}));
  auto gx = df::gradients(df::reduce_sum(rows), x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  // 8 x, 4 x, 2 x, x
  const df::Tensor<float> slope = session.run({{x, df::Tensor<float>({1, 2}, {1, 2})}}, gx);
  CHECK(slope.shape() == df::Shape{1, 2});
  CHECK(slope(0, 0) == 15);
  CHECK(slope(0, 1) == 15);
}

TEST_CASE("gradients go through a variable that grows to a shape that is known") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {1, 2});
  auto rows = std::get<1>(df::while_loop([](auto i, auto) { return i < 2; },
                                         [&](auto i, auto rows) {
                                           return std::tuple{i + 1, df::concat(0, {rows * 2.0f, x})};
                                         },
                                         std::tuple{df::constant(graph, 0), df::identity(x)},
                                         {.shapes = {df::Shape{}, {df::dynamic, 2}}}));
  auto weights = df::constant(graph, df::Tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  auto gx = df::gradients(df::reduce_sum(df::ensure_shape(rows, {3, 2}) * weights), x);
  df::Session session(graph);
  // The rows are 4 x, 2 x, x.
  const df::Tensor<float> slope = session.run({{x, df::Tensor<float>({1, 2}, {1, 2})}}, gx);
  CHECK(slope(0, 0) == 4 * 1 + 2 * 3 + 5);
  CHECK(slope(0, 1) == 4 * 2 + 2 * 4 + 6);
}

TEST_CASE("a body takes gradients of calls that it has built itself") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto slope = df::cond(
      x > 0.0f,
      [&] {
        auto cubed = df::function(graph, "cubed", [](df::Output<float> v) { return v * v * v; });
        auto y = df::while_loop([](auto v) { return v < 100.0f; }, [&](auto v) { return cubed(v) + v; }, x);
        return df::gradients(y, x);
      },
      [&] {
        return df::gradients(df::cond(
                                 x < -1.0f, [&] { return x * x; }, [&] { return -x; }),
                             x);
      });
  df::Session session(graph, {.passes = df::testing::each_form()});
  const auto at = [&](float v) { return session.run({{x, df::Tensor<float>(v)}}, slope).scalar(); };
  CHECK(at(-3) == -6);
  CHECK(at(-0.5f) == -1);
  // 2, 10, 1010
  CHECK(at(2) == (3 * 2 * 2 + 1) * (3 * 10 * 10 + 1));
}

TEST_CASE("gradients stop in bodies where they are told to stop around them") {
  for (int kind = 0; kind < 4; ++kind) {
    INFO(kind);
    df::Graph graph;
    auto x = df::placeholder<float>(graph, {});
    auto z = x * x;
    df::Output<float> y = x * z;
    if (kind == 1) {
      y = df::cond(
          x > 0.0f, [&] { return x * z; }, [&] { return -x; });
    } else if (kind == 2) {
      y = df::function(graph, "f", [&](df::Output<float> a) { return a * z; })(x);
    } else if (kind == 3) {
      y = std::get<1>(df::while_loop([&](auto i, auto) { return i < 1; },
                                     [&](auto i, auto v) {
                                       return std::tuple{i + 1, v * z};
                                     },
                                     std::tuple{df::constant(graph, 0), x}));
    }
    const std::vector<df::AnyOutput> ys{y}, xs{x}, stops{z};
    const std::vector<df::Gradient> slopes = df::gradients(ys, xs, {.stop_gradients = stops});
    df::Session session(graph, {.passes = df::testing::each_form()});
    CHECK(session.run({{x, df::Tensor<float>(2.0f)}}, df::Output<float>(df::densify(slopes[0], x))).scalar() == 4);
  }
}

TEST_CASE("a gradient of a call is right where the call's output is fed, and where it is stopped at") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto [y, z] = df::cond(
      x > 0.0f,
      [&] {
        auto square = x * x;
        return std::tuple{square * x, square};
      },
      [&] {
        return std::tuple{-x, x};
      });
  auto slope = df::gradients(y, x);  // 3 x^2
  const std::vector<df::AnyOutput> ys{slope}, xs{x}, stops{y};
  auto second = df::Output<float>(df::densify(df::gradients(ys, xs, {.stop_gradients = stops})[0], x));  // 6 x
  df::Session session(graph, {.passes = df::testing::each_form()});
  const df::Tensor<float> two(2.0f), one(1.0f);
  CHECK(session.run({{x, two}}, slope).scalar() == 12);
  CHECK(session.run({{x, two}, {y, one}}, slope).scalar() == 12);
  CHECK(session.run({{x, two}, {y, one}, {z, one}}, slope).scalar() == 12);
  CHECK(session.run({{x, two}}, second).scalar() == 12);
}

TEST_CASE("two branches that are one function have the gradient of it") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  df::cond(
      x > 0.0f,
      [&] {
        auto square = x * x;
        return square * x;
      },
      [&] { return -x; }, {.name = "y"});
  df::GraphDef def = df::to_graph_def(graph);
  for (df::NodeDef& node : def.nodes) {
    for (auto& [name, value] : node.attrs) {
      if (name != "else_branch") continue;
      for (const auto& [other, then] : node.attrs) {
        if (other == "then_branch") value = then;
      }
    }
  }
  df::Graph copy = df::import_graph(def, df::standard_op_table());
  df::Output<float> of(copy.output("x")), y(copy.output("y"));
  auto slope = df::gradients(y, of);
  df::Session session(copy, {.passes = df::testing::each_form()});
  for (const float at : {-2.0f, 2.0f}) CHECK(session.run({{of, df::Tensor<float>(at)}}, slope).scalar() == 12);
}

TEST_CASE("what is to be kept of no body is an error, of the step and of a gradient") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  auto y = df::while_loop([](auto v) { return v < 10.0f; }, [&](auto v) { return v * x; }, x);
  df::gradients(y, x);
  const df::GraphDef def = df::to_graph_def(graph);
  int num_tried = 0;
  for (const std::string& node : {std::string("x"), std::string("nobody"), std::string("while/condition/Less")}) {
    for (const std::int64_t output : {std::int64_t{0}, std::int64_t{7}, std::int64_t{-1}}) {
      INFO(node << ":" << output);
      df::GraphDef changed = def;
      std::string kept;
      for (df::NodeDef& each : changed.nodes) {
        if (each.op != "KeptList") continue;
        kept = each.name;
        each.attrs = {{"node", node}, {"output", output}};
      }
      REQUIRE(!kept.empty());
      df::Graph copy = df::import_graph(changed, df::standard_op_table());
      df::Output<float> of(copy.output("x"));
      df::Output<float> last(copy.output("while/While"));
      std::vector<df::AnyOutput> gradients;
      for (const df::NodeDef& each : changed.nodes) {
        if (each.op == "While" && each.name.find("gradient") != std::string::npos) {
          gradients.push_back(copy.output(each.name + ":1"));
        }
      }
      df::Session session(copy, {.passes = df::testing::each_form()});
      for (const df::AnyOutput& slope : gradients) {
        CHECK(code_of([&] {
                session.run({{of, df::Tensor<float>(2.0f)}}, df::Output<float>(slope));
              }) == df::Code::invalid_argument);
        const df::Code code = code_of([&] { df::gradients(df::Output<float>(slope), of); });
        CHECK((code == df::Code::ok || code == df::Code::invalid_argument));
        ++num_tried;
      }
      CHECK(session.run({{of, df::Tensor<float>(2.0f)}}, last).scalar() == 16);
    }
  }
  CHECK(num_tried == 9);
}

TEST_CASE("what is kept of a body has its element type") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  auto y = df::cond(
      x > 0.0f, [&] { return df::exp(x, {.name = "inner"}); }, [&] { return -x; });
  const auto kept = [&](const df::AnyOutput& call, const std::string& node, df::DType dtype) {
    return df::AnyOutput(df::build<df::KeptValue>({call}, {.node = node}, {}, df::detail::one_type(dtype)));
  };
  auto last = df::while_loop([](auto v) { return v < 10.0f; }, [](auto v) { return v * 2.0f; }, x);
  const df::Output<float> right(kept(y, "cond/then/inner", df::DType::float32));
  const df::Output<double> wrong(kept(y, "cond/then/inner", df::DType::float64));
  const df::Output<float> count(kept(last, "", df::DType::float32));
  const df::Output<float> list(kept(last, "while/body/Mul", df::DType::float32));
  df::Session session(graph, {.passes = df::testing::each_form()});
  const df::Feed one(x, df::Tensor<float>(1.0f));
  CHECK(session.run({one}, right).scalar() == Approx(std::exp(1.0f)));
  CHECK(code_of([&] { session.run({one}, wrong); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { session.run({one}, count); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { session.run({one}, list); }) == df::Code::invalid_argument);
}
