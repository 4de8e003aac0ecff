#include <dflow/autodiff/gradients.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

using namespace dflow;

namespace {

struct NoGradient : Op<"NoGradient", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};

struct Cube : ElementwiseOp<"Cube", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return x * x * x;
  }
};

struct Blend : ElementwiseOp<"Blend", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    return a * exp(b);
  }
};

struct OfThree : ElementwiseOp<"OfThree", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b, T c) {
    return a * a * b + b * c * c * c;
  }
};

struct OfFour : ElementwiseOp<"OfFour", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b, T c, T d) {
    return a * a * b + b * c * c * c + d * d * a * c;
  }
};

}  // namespace

TEST_CASE("the gradient of a product, through both factors") {
  Graph graph;
  auto x = placeholder<float>(graph, {}), y = placeholder<float>(graph, {});
  auto [gx, gy] = gradients(x * y + x, x, y);
  Session session(graph);
  const auto [dx, dy] = session.run({{x, 3.0f}, {y, 4.0f}}, gx, gy);
  CHECK(dx.scalar() == 5);
  CHECK(dy.scalar() == 3);
}

TEST_CASE("contributions of several paths are added") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  auto gx = gradients(x * x + x * 3.0f + x, x);
  Session session(graph);
  CHECK(session.run({{x, 2.0f}}, gx).scalar() == 8);
}

TEST_CASE("what y does not depend on has gradient zero, and is missing in the erased form") {
  Graph graph;
  auto x = placeholder<float>(graph, {2}), z = placeholder<float>(graph, {2});
  auto y = reduce_sum(x);
  const AnyOutput ys[] = {y}, xs[] = {z};
  CHECK_FALSE(gradients(std::span(ys), std::span(xs))[0].exists());
  Session session(graph);
  CHECK(session.run({{z, Tensor<float>({2}, {1, 2})}}, gradients(y, z))(1) == 0);
}

TEST_CASE("stop_gradients and stop_gradient block the flow") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  auto h = x * x;
  auto y = h * x;
  const AnyOutput ys[] = {y}, xs[] = {x}, stops[] = {h};
  const Gradient gradient = gradients(std::span(ys), std::span(xs), {.stop_gradients = stops})[0];
  Session session(graph);
  CHECK(session.run({{x, 3.0f}}, Output<float>(gradient.dense)).scalar() == 9);
  CHECK(session.run({{x, 3.0f}}, gradients(stop_gradient(h) * x, x)).scalar() == 9);
}

TEST_CASE("an x that is stopped gets the partial derivative") {
  Graph graph;
  auto a = placeholder<float>(graph, {});
  auto b = a * 2.0f;
  auto y = a * b;
  const AnyOutput ys[] = {y}, xs[] = {a, b}, stops[] = {a, b};
  const std::vector<Gradient> partial = gradients(std::span(ys), std::span(xs), {.stop_gradients = stops});
  Session session(graph);
  CHECK(session.run({{a, 3.0f}}, Output<float>(partial[0].dense)).scalar() == 6);
  CHECK(session.run({{a, 3.0f}}, Output<float>(partial[1].dense)).scalar() == 3);
}

TEST_CASE("a graph with a loop between y and x is refused in one sentence") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  auto h = x * 2.0f;
  auto y = h * x;
  // No builder makes a loop yet; a passes' or file's may.
  const_cast<Node&>(h.node()).inputs[1] = y.endpoint();
  try {
    gradients(y, x);
    FAIL("it was differentiated");
  } catch (const Error& error) {
    CHECK(error.code() == Code::unimplemented);
    CHECK(std::string(error.what()).find("'" + h.name() + "'") != std::string::npos);
    CHECK(std::string(error.what()).find("loop") != std::string::npos);
  }
}

TEST_CASE("gradients says what is wrong with its arguments, and where") {
  Graph graph, other;
  const AnyOutput x = placeholder<float>(graph, {}), z = placeholder<float>(other, {}), empty;
  const auto check = [&](std::vector<AnyOutput> ys, std::vector<AnyOutput> xs, std::vector<AnyOutput> grad_ys) {
    const auto line = __LINE__ + 2;
    try {
      gradients(std::span<const AnyOutput>(ys), std::span<const AnyOutput>(xs), {.grad_ys = grad_ys});
      FAIL("it was differentiated");
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_argument);
      CHECK(error.status().where().line() == line);
    }
  };
  check({}, {x}, {});
  check({x}, {z}, {});
  check({x}, {empty}, {});
  check({empty}, {x}, {});
  check({x}, {x}, {x, x});
}

TEST_CASE("typed gradients of an empty edge name the line that asks for them") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const Variable<float> w(graph, 1.0f);
  const Output<float> none;
  const auto line_of = [](auto&& differentiate) {
    try {
      differentiate();
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_argument);
      CHECK(std::string(error.status().where().file_name()) == __FILE__);
      return error.status().where().line();
    }
    return std::uint_least32_t{0};
  };
  CHECK(line_of([&] { gradients(none, x); }) == __LINE__);
  CHECK(line_of([&] { gradients(w, none); }) == __LINE__);
  CHECK(line_of([&] { gradients(none, x, w); }) == __LINE__);
  CHECK(line_of([&] { gradients(w, x, none, w); }) == __LINE__);
}

TEST_CASE("gradient nodes go where the nodes go that they differentiate") {
  Graph graph;
  auto x = placeholder<float>(graph, {3, 1});
  Output<float> y;
  {
    const ScopeGuard on = graph.device("/cpu:1");
    y = sigmoid(x);
  }
  Output<float> z;
  {
    const ScopeGuard beside = graph.colocate_with(y);
    z = tanh(y);
  }
  const std::size_t before = graph.num_nodes();
  const ScopeGuard elsewhere = graph.device("/cpu:2");
  gradients(z, x);
  for (std::size_t i = before; i < graph.num_nodes(); ++i) {
    const Node& node = graph.node(static_cast<NodeId>(i));
    INFO(node.name << " on '" << node.device << "' beside " << node.colocated_with.value());
    CHECK((node.device == "/device:CPU:1" || (node.device.empty() && node.colocated_with == y.node_id())));
  }
}

TEST_CASE("grad_ys weigh the outputs") {
  Graph graph;
  auto x = placeholder<float>(graph, {2});
  auto y = x * x;
  const AnyOutput ys[] = {y}, xs[] = {x}, weights[] = {constant(graph, Tensor<float>({2}, {10, 100}))};
  const Gradient gradient = gradients(std::span(ys), std::span(xs), {.grad_ys = weights})[0];
  Session session(graph);
  const Tensor<float> value = session.run({{x, Tensor<float>({2}, {1, 2})}}, Output<float>(gradient.dense));
  CHECK(value(0) == 20);
  CHECK(value(1) == 400);
  const AnyOutput wrong[] = {constant(graph, 1)};
  CHECK_THROWS_AS(gradients(std::span(ys), std::span(xs), {.grad_ys = wrong}), Error);
}

TEST_CASE("a gather's gradient is rows; two gathers join; densified they are added") {
  Graph graph;
  auto table = placeholder<float>(graph, {4, 2});
  auto ids = constant(graph, Tensor<std::int32_t>({3}, {1, 3, 1}));
  auto more = constant(graph, Tensor<std::int32_t>({1}, {0}));
  auto y = reduce_sum(gather(table, ids)) + reduce_sum(gather(table, more) * 5.0f);
  const AnyOutput ys[] = {y}, xs[] = {table};
  const Gradient gradient = gradients(std::span(ys), std::span(xs))[0];
  REQUIRE(gradient.slices.has_value());
  Session session(graph);
  const Tensor<float> in({4, 2}, std::vector<float>(8, 1.0f));
  const Tensor<float> dense = session.run({{table, in}}, Output<float>(densify(gradient, table)));
  CHECK(dense(0, 0) == 5);
  CHECK(dense(1, 1) == 2);
  CHECK(dense(2, 0) == 0);
  CHECK(dense(3, 0) == 1);
}

TEST_CASE("an op without gradient is an error that names it, unless nothing flows through it") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  auto y = apply<NoGradient>(x, {}, {.name = "opaque"});
  try {
    gradients(y, x);
    FAIL("it was differentiated");
  } catch (const Error& error) {
    CHECK(error.code() == Code::unimplemented);
    CHECK(std::string(error.what()).find("opaque") != std::string::npos);
    CHECK(std::string(error.what()).find("gradients_test.cpp") != std::string::npos);
  }
  auto z = placeholder<float>(graph, {});
  CHECK_NOTHROW(gradients(y * z, z));
}

TEST_CASE("an elementwise op's gradient is derived from its expression, to second order") {
  Graph graph;
  auto x = placeholder<double>(graph, {});
  auto y = apply<Cube>(x);
  auto g = gradients(y, x);
  auto h = gradients(g, x);
  Session session(graph, {.ops = standard_ops + ops<Cube, Blend>});
  const auto [g2, h2] = session.run({{x, 2.0}}, g, h);
  CHECK(g2.scalar() == 12);
  CHECK(h2.scalar() == 12);
  try {
    gradients(h, x);
    FAIL("a third order was derived");
  } catch (const Error& error) {
    CHECK(error.code() == Code::unimplemented);
  }
  auto a = placeholder<double>(graph, {2, 1}), b = placeholder<double>(graph, {3});
  auto [ga, gb] = gradients(apply<Blend>(a, b), a, b);
  const auto [da, db] = session.run({{a, Tensor<double>({2, 1}, {1, 2})}, {b, Tensor<double>({3}, {0, 0, 0})}}, ga, gb);
  CHECK(da.shape() == Shape{2, 1});
  CHECK(da(0, 0) == 3);
  CHECK(db.shape() == Shape{3});
  CHECK(db(2) == 3);
}

TEST_CASE("an elementwise op of three and of four arguments has a gradient to second order") {
  Graph graph;
  const std::vector<Output<double>> xs{placeholder<double>(graph, {}), placeholder<double>(graph, {}),
                                       placeholder<double>(graph, {}), placeholder<double>(graph, {})};
  const double a = 2, b = 3, c = 5, d = 7;
  const auto of_three = apply<OfThree>(xs[0], xs[1], xs[2]);
  const auto of_four = apply<OfFour>(xs[0], xs[1], xs[2], xs[3]);
  const std::vector<double> firsts_of_three{2 * a * b, a * a + c * c * c, 3 * b * c * c};
  const std::vector<double> firsts_of_four{2 * a * b + d * d * c, a * a + c * c * c, 3 * b * c * c + d * d * a,
                                           2 * d * a * c};
  const std::vector<std::vector<double>> seconds_of_three{
      {2 * b, 2 * a, 0}, {2 * a, 0, 3 * c * c}, {0, 3 * c * c, 6 * b * c}};
  const std::vector<std::vector<double>> seconds_of_four{{2 * b, 2 * a, d * d, 2 * d * c},
                                                         {2 * a, 0, 3 * c * c, 0},
                                                         {d * d, 3 * c * c, 6 * b * c, 2 * d * a},
                                                         {2 * d * c, 0, 2 * d * a, 2 * a * c}};
  Session session(graph, {.ops = standard_ops + ops<OfThree, OfFour>});
  const auto value_of = [&](const AnyOutput& edge) {
    return session.run({{xs[0], a}, {xs[1], b}, {xs[2], c}, {xs[3], d}}, Output<double>(edge)).scalar();
  };
  const auto check = [&](const AnyOutput& y, const std::vector<double>& firsts,
                         const std::vector<std::vector<double>>& seconds) {
    const std::vector<AnyOutput> by(xs.begin(), xs.begin() + static_cast<std::ptrdiff_t>(firsts.size()));
    const std::vector<Gradient> slopes = gradients(std::span(&y, 1), std::span(by));
    for (std::size_t i = 0; i < by.size(); ++i) {
      CHECK(value_of(slopes[i].dense) == firsts[i]);
      const std::vector<Gradient> curvatures = gradients(std::span(&slopes[i].dense, 1), std::span(by));
      for (std::size_t j = 0; j < by.size(); ++j) {
        INFO("by " << i << " and " << j);
        CHECK(value_of(curvatures[j].dense) == seconds[i][j]);
      }
    }
  };
  check(of_three, firsts_of_three, seconds_of_three);
  check(of_four, firsts_of_four, seconds_of_four);
}

TEST_CASE("second derivatives of four arguments are summed to the shapes of broadcast inputs") {
  Graph graph;
  const auto a = placeholder<double>(graph, {2, 1}), b = placeholder<double>(graph, {40}),
             c = placeholder<double>(graph, {}), d = placeholder<double>(graph, {2, 40});
  const auto slope = std::get<0>(gradients(apply<OfFour>(a, b, c, d), a, c));
  const auto [by_b, by_c, by_d] = gradients(slope, b, c, d);
  Session session(graph, {.ops = standard_ops + ops<OfFour>});
  const auto ones = Tensor<double>::full({40}, 1), all = Tensor<double>::full({2, 40}, 3);
  const auto [vb, vc, vd] =
      session.run({{a, Tensor<double>({2, 1}, {2, 4})}, {b, ones}, {c, 5.0}, {d, all}}, by_b, by_c, by_d);
  CHECK(vb.shape() == Shape{40});
  CHECK(vb(39) == 2 * (2 + 4));  // 2 a, over both rows
  CHECK(vc.shape() == Shape{});
  CHECK(vc.scalar() == 80 * 9);  // d^2, over all
  CHECK(vd.shape() == Shape{2, 40});
  CHECK(vd(1, 0) == 30);  // 2 d c
}

TEST_CASE("a 100,000-deep chain is differentiated without recursion") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  Output<float> y = x;
  for (int i = 0; i < 100'000; ++i) y = -y;
  Session session(graph);
  CHECK(session.run({{x, 1.0f}}, gradients(y, x)).scalar() == 1);
}

TEST_CASE("rows gathered by int32 and by int64 have one gradient") {
  Graph graph;
  auto table = placeholder<float>(graph, {3, 2});
  auto narrow = gather(table, constant(graph, Tensor<std::int32_t>({2}, {0, 2})));
  auto wide = gather(table, constant(graph, Tensor<std::int64_t>({3}, {2, 2, 1})));
  auto slope = gradients(reduce_sum(narrow) + reduce_sum(wide) * 10.0f, table);
  Session session(graph);
  const auto value = session.run({{table, Tensor<float>::zeros({3, 2})}}, slope);
  CHECK(value(0, 0) == 1);
  CHECK(value(1, 1) == 10);
  CHECK(value(2, 0) == 21);
}

TEST_CASE("the gradient of a table with more rows than int32 can count is refused, not narrowed") {
  for (const std::int64_t rows : {std::int64_t{1} << 31, (std::int64_t{1} << 32) + 5}) {
    Graph graph;
    const auto table = placeholder<float>(graph, {rows, 2});
    const auto y = reduce_sum(gather(table, constant(graph, Tensor<std::int64_t>({1}, {3}))));
    CHECK_THROWS_WITH(gradients(y, table), Catch::Matchers::Contains(std::to_string(rows)));
  }
}

// TensorFlow 2.21.
TEST_CASE("a complex power has a gradient by its exponent where the base is 0") {
  using Complex = std::complex<double>;
  Graph graph;
  auto base = placeholder<Complex>(graph, {}), exponent = placeholder<Complex>(graph, {});
  auto [db, de] = gradients(pow(base, exponent), base, exponent);
  Session session(graph);
  const auto [by_base, by_exponent] = session.run({{base, Complex(0, 0)}, {exponent, Complex(2, 0)}}, db, de);
  CHECK(by_base.scalar() == Complex(0, 0));
  CHECK(by_exponent.scalar() == Complex(0, 0));
}

TEST_CASE("a vector of xs gives a vector of gradients, zeros where y does not depend on one") {
  Graph graph;
  std::vector<Output<float>> xs;
  for (int i = 0; i < 3; ++i) xs.push_back(placeholder<float>(graph, {2}));
  const auto y = reduce_sum(xs[0] * xs[0] + xs[2] * 3.0f);
  const std::vector<Output<float>> gradients_of = gradients(y, xs);
  REQUIRE(gradients_of.size() == 3);
  Session session(graph);
  const Tensor<float> x({2}, {1, -4});
  const auto run = [&](std::size_t i) { return session.run({{xs[0], x}, {xs[1], x}, {xs[2], x}}, gradients_of[i]); };
  CHECK(run(0)(1) == -8);
  CHECK(run(1)(1) == 0);
  CHECK(run(2)(0) == 3);
  CHECK(gradients(y, std::vector<Output<float>>{}).empty());
}
