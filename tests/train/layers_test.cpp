#include <dflow/train/layers.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/autodiff/gradients.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/metrics.hpp>
#include <dflow/train/optimizers.hpp>

#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace df = dflow;

TEST_CASE("A dense layer multiplies, adds and activates with its own variables") {
  df::Graph graph({.seed = 3});
  auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  auto y = df::dense(x, 2, {.activation = df::Activation::relu, .kernel_initializer = df::init::constant(-1.0)});
  CHECK(df::dense(y, 4, {.use_bias = false}).shape() == df::PartialShape{df::dynamic, 4});
  CHECK(y.shape() == df::PartialShape{df::dynamic, 2});
  CHECK(graph.find("dense/kernel").is_valid());
  CHECK(graph.find("dense/bias").is_valid());
  CHECK(graph.find("dense_1/kernel").is_valid());
  CHECK_FALSE(graph.find("dense_1/bias").is_valid());
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto value = session.run({{x, df::Tensor<float>({2, 3}, {1, 2, 3, -1, -2, -3})}}, y);
  CHECK(value(0, 0) == 0.0f);
  CHECK(value(1, 1) == 6.0f);
}

TEST_CASE("A dense layer takes rows of any rank, as a matrix of all rows") {
  df::Graph graph({.seed = 3});
  const auto x = df::placeholder<double>(graph, {df::dynamic, df::dynamic, 3});
  const df::Dense layer(2);
  const auto y = layer(x);
  CHECK(y.shape() == df::PartialShape{df::dynamic, df::dynamic, 2});
  CHECK(layer(df::placeholder<double>(graph, {df::dynamic, 5, 3})).shape() == df::PartialShape{df::dynamic, 5, 2});
  CHECK(layer(df::placeholder<double>(graph, {4, 1, 5, 3})).shape() == df::PartialShape{4, 1, 5, 2});
  const auto kernel = layer.kernel().as<double>(), bias = layer.bias().as<double>();
  const df::Tensor<double> weights({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto [by_kernel, by_bias, by_x] = df::gradients(df::reduce_sum(y * weights), kernel, bias, x);
  df::Session session(graph);
  session.run(kernel.assign(df::Tensor<double>({3, 2}, {1, 0, 0, 1, 2, -1})));
  session.run(bias.assign(df::Tensor<double>({2}, {0.5, -0.5})));
  const df::Tensor<double> given({2, 2, 3}, {1, 2, 3, 0, 0, 0, -1, 0, 1, 2, 2, -2});
  const auto is = [](const df::Tensor<double>& got, const df::Shape& shape, const std::vector<double>& wanted) {
    CHECK(got.shape() == shape);
    CHECK(std::vector<double>(got.begin(), got.end()) == wanted);
  };
  const auto [values, dkernel, dbias, dx] = session.run({{x, given}}, y, by_kernel, by_bias, by_x);
  // Of NumPy 2.4.6: x @ k + b, and the same with einsum for the gradients.
  is(values, {2, 2, 2}, {7.5, -1.5, 0.5, -0.5, 1.5, -1.5, -1.5, 3.5});
  is(dkernel, {3, 2}, {10, 12, 16, 20, -6, -4});
  is(dbias, {2}, {16, 20});
  is(dx, {2, 2, 3}, {1, 2, 0, 3, 4, 2, 5, 6, 4, 7, 8, 6});
  is(session.run({{x, df::Tensor<double>({4, 0, 3})}}, y), {4, 0, 2}, {});
}

TEST_CASE("A layer is named by its place, or else by its options") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  const auto ids = df::placeholder<std::int32_t>(graph, {df::dynamic});
  const auto y = df::flatten(df::conv2d(x, 2, 3, {.name = "unused"}, {.name = "edges"}));
  CHECK(df::dense(y, 2, {.name = "head"}).name().starts_with("head/"));
  CHECK(df::dense(y, 2, {}, {.name = "fc"}).name().starts_with("fc/"));
  static_cast<void>(df::batch_normalization(y, {}, {.name = "norm"}));
  static_cast<void>(df::embedding<float>(ids, 5, 10, {}, {.name = "words"}));
  for (const char* name : {"edges/kernel", "head/kernel", "fc/kernel", "fc/bias", "norm/gamma", "words/table"}) {
    INFO(name);
    CHECK(graph.find(name).is_valid());
  }
}

TEST_CASE("The initial kernel of a dense layer is Glorot's, the same for the same seed") {
  const auto kernel_of = [](std::uint64_t seed) {
    df::Graph graph({.seed = seed});
    auto x = df::placeholder<float>(graph, {df::dynamic, 100});
    static_cast<void>(df::dense(x, 50));
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    return session.run(df::Variable<float>(df::AnyVariable::of(graph.find("dense/kernel"))));
  };
  const auto kernel = kernel_of(5);
  double sum = 0, squares = 0;
  const double limit = std::sqrt(6.0 / 150.0);
  for (const float value : kernel) {
    REQUIRE(std::abs(value) <= limit);
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  CHECK(sum / 5000 == Catch::Approx(0.0).margin(0.01));
  CHECK(squares / 5000 == Catch::Approx(limit * limit / 3).epsilon(0.05));
  CHECK(df::bitwise_equal(kernel, kernel_of(5)));
  CHECK_FALSE(df::bitwise_equal(kernel, kernel_of(6)));
}

TEST_CASE("Convolution, pooling and flattening layers have the shapes they promise") {
  df::Graph graph;
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 3});
  auto y = df::conv2d(images, 16, 3, {.activation = df::Activation::relu});
  CHECK(y.shape() == df::PartialShape{df::dynamic, 8, 8, 16});
  CHECK(df::conv2d(images, 4, 3, {.stride = 2, .padding = df::Padding::valid}).shape() ==
        df::PartialShape{df::dynamic, 3, 3, 4});
  CHECK(df::conv2d(images, 4, 3, {.dilation = 2, .padding = df::Padding::valid}).shape() ==
        df::PartialShape{df::dynamic, 4, 4, 4});
  CHECK_THROWS_WITH(df::conv2d(images, 4, 3, {.dilation = 0}), Catch::Matchers::Contains("dilations must be positive"));
  CHECK(df::max_pool(y, 2).shape() == df::PartialShape{df::dynamic, 4, 4, 16});
  CHECK(df::avg_pool(y, 3, df::Padding::same).shape() == df::PartialShape{df::dynamic, 3, 3, 16});
  CHECK(df::flatten(y).shape() == df::PartialShape{df::dynamic, 1024});
}

TEST_CASE("Layers refuse inputs they cannot size their variables by") {
  df::Graph graph;
  auto open = df::placeholder<float>(graph, {df::dynamic, df::dynamic});
  auto flat = df::placeholder<float>(graph, {df::dynamic, 4});
  CHECK_THROWS_WITH(df::dense(open, 3), Catch::Matchers::Contains("dense: the input must have rank 2"));
  CHECK_THROWS_WITH(df::dense(flat, 0), Catch::Matchers::Contains("units must be positive"));
  CHECK_THROWS_WITH(df::conv2d(flat, 3, 3), Catch::Matchers::Contains("rank 4"));
  CHECK_THROWS_WITH(df::flatten(open), Catch::Matchers::Contains("not known"));
  CHECK_THROWS_WITH(df::dropout(flat, 0.0f, df::Training(false)), Catch::Matchers::Contains("probability"));
}

TEST_CASE("Dropout thins in training only") {
  df::Graph graph({.seed = 11});
  auto x = df::placeholder<float>(graph, {1000});
  auto training = df::placeholder<bool>(graph, df::Shape{});
  auto y = df::dropout(x, 0.75f, df::Training(training));
  CHECK(df::dropout(x, 0.75f, df::Training(false)) == x);
  df::Session session(graph);
  const auto ones = df::Tensor<float>::full({1000}, 1.0f);
  const auto same = session.run({{x, ones}, {training, false}}, y);
  for (const float value : same) REQUIRE(value == 1.0f);
  int dropped = 0;
  for (const float value : session.run({{x, ones}, {training, true}}, y)) {
    REQUIRE((value == 0.0f || value == Catch::Approx(4.0 / 3.0)));
    dropped += value == 0.0f ? 1 : 0;
  }
  CHECK(dropped > 180);
  CHECK(dropped < 320);
}

namespace {
template <class T>
int num_dropped_by_switch(float keep_prob) {
  df::Graph graph({.seed = 11});
  const auto x = df::placeholder<T>(graph, {df::dynamic});
  const auto training = df::placeholder<bool>(graph, df::Shape{});
  const auto y = df::dropout(x, keep_prob, df::Training(training));
  df::Session session(graph);
  const auto ones = df::Tensor<T>::full({100'000}, T(1));
  for (const T value : session.run({{x, ones}, {training, false}}, y)) REQUIRE(value == T(1));
  int dropped = 0;
  for (const T value : session.run({{x, ones}, {training, true}}, y)) dropped += value == T(0) ? 1 : 0;
  return dropped;
}
}  // namespace

TEST_CASE("Dropout of 16-bit floats with a switch draws with the probability that it is given") {
  for (const int dropped : {num_dropped_by_switch<df::Half>(0.999f), num_dropped_by_switch<df::BFloat16>(0.999f)}) {
    CHECK(dropped > 50);
    CHECK(dropped < 150);
  }
  for (const int dropped : {num_dropped_by_switch<df::Half>(0.001f), num_dropped_by_switch<df::BFloat16>(0.001f)}) {
    CHECK(dropped > 100'000 - 150);
    CHECK(dropped < 100'000 - 50);
  }
}

TEST_CASE("Batch normalisation uses the batch in training and moving averages after") {
  for (const bool is_fed : {false, true}) {
    df::Graph graph;
    auto x = df::placeholder<float>(graph, {df::dynamic, 1, 2, 2});
    auto fed = df::placeholder<bool>(graph, df::Shape{});
    auto y = df::batch_normalization(
        x, {.training = is_fed ? df::Training(fed) : df::Training(true), .momentum = 0.5, .epsilon = 1e-6});
    const auto updates = graph.collection("update_ops");
    REQUIRE(updates.size() == 2);
    const auto update = df::group(std::span<const df::Operation>(updates));
    const df::Variable<float> moving(df::AnyVariable::of(graph.find("batch_normalization/moving_mean")));
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    const df::Tensor<float> batch({2, 1, 2, 2}, {1, 10, 3, 10, 5, 10, 7, 10});
    const auto value =
        is_fed ? session.run({{x, batch}, {fed, true}}, y, update) : session.run({{x, batch}}, y, update);
    CHECK(value(0, 0, 0, 0) == Catch::Approx(-3.0 / std::sqrt(5.0)).epsilon(1e-4));
    CHECK(value(1, 0, 1, 0) == Catch::Approx(3.0 / std::sqrt(5.0)).epsilon(1e-4));
    CHECK(value(0, 0, 0, 1) == Catch::Approx(0.0).margin(1e-3));
    CHECK(session.run(moving)(0) == Catch::Approx(2.0));
    CHECK(session.run(moving)(1) == Catch::Approx(5.0));
    if (is_fed) {
      session.run({{x, batch}, {fed, false}}, update);
      CHECK(session.run(moving)(0) == Catch::Approx(2.0));
      const auto later = session.run({{x, batch}, {fed, false}}, y);
      CHECK(later(0, 0, 0, 0) < 0.0f);
      CHECK(later(0, 0, 0, 1) > 1.0f);
    }
  }
}

TEST_CASE("A layer that is called again uses its variables again") {
  df::Graph graph({.seed = 4});
  const auto x = df::placeholder<float>(graph, {df::dynamic, 3}),
             other = df::placeholder<float>(graph, {df::dynamic, 3});
  df::Dense hidden(4, {.activation = df::Activation::tanh}), out(2, {.name = "head"});
  const df::Dense same = hidden;
  CHECK_FALSE(hidden.has_variables());
  CHECK_THROWS_WITH(hidden.kernel(), Catch::Matchers::Contains("variables are made at the first call"));
  const auto model = [&](df::Output<float> in, df::Training training) {
    return out(df::dropout(hidden(in), 0.5f, training));
  };
  const auto trained = model(x, df::Training(true)), evaluated = model(other, df::Training(false));
  CHECK(df::global_variables(graph).size() == 4);
  CHECK(same.has_variables());
  CHECK(same.kernel().handle() == hidden.kernel().handle());
  CHECK(hidden.kernel().name() == "dense/kernel");
  CHECK(out.bias().name() == "head/bias");
  CHECK(trained.name().starts_with("head/"));
  CHECK(evaluated.name().starts_with("head_1/"));

  const auto loss = df::reduce_sum(df::square(trained));
  const auto train = df::train::GradientDescent(0.1f).minimize(loss);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const df::Tensor<float> one({{1, 2, 3}});
  const auto before = session.run({{other, one}}, evaluated);
  session.run({{x, one}}, train);
  const auto [after, kernel, bias, outer] = session.run({{other, one}}, evaluated, hidden.kernel().as<float>(),
                                                        hidden.bias().as<float>(), out.kernel().as<float>());
  CHECK_FALSE(df::bitwise_equal(before, after));
  float expected = session.run(out.bias().as<float>())(0);
  for (int j = 0; j < 4; ++j) {
    const float sum = 1 * kernel(0, j) + 2 * kernel(1, j) + 3 * kernel(2, j) + bias(j);
    expected += std::tanh(sum) * outer(j, 0);
  }
  CHECK(after(0, 0) == Catch::Approx(expected).epsilon(1e-5));
}

TEST_CASE("A convolution may be applied to its own output") {
  df::Graph graph({.seed = 4});
  const auto images = df::placeholder<float>(graph, {df::dynamic, 6, 6, 2});
  df::Convolution2D edges(2, 3, {.use_bias = false});
  CHECK(edges(edges(images), {.name = "deep"}).shape() == df::PartialShape{df::dynamic, 6, 6, 2});
  CHECK(df::global_variables(graph).size() == 1);
  CHECK_THROWS_WITH(edges.bias(), Catch::Matchers::Contains("layer 'conv2d' has no variable 'bias'"));
}

TEST_CASE("Variables made inside control dependencies are initialised without them") {
  df::Graph graph({.seed = 4});
  const auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  const auto y = df::BatchNormalization()(x);
  df::Operation train;
  {
    const auto after = graph.control_dependencies(graph.collection("update_ops"));
    const auto loss = df::reduce_sum(df::dense(y, 2, {.kernel_regularizer = df::regularizer::l2(1)}));
    train = df::train::Adam(0.1).minimize(loss + df::regularization_loss<float>(graph));
  }
  df::Session session(graph);
  session.run(df::initialize_variables(graph));  // x is not fed
  session.run({{x, df::Tensor<float>({{1, 2, 3}, {3, 2, 2}})}}, train);
}

TEST_CASE("A layer refuses another graph and other inputs than those it was made for") {
  df::Graph graph, another;
  df::Dense layer(4);
  static_cast<void>(layer(df::placeholder<float>(graph, {df::dynamic, 3})));
  CHECK_THROWS_WITH(layer(df::placeholder<float>(another, {df::dynamic, 3})),
                    Catch::Matchers::Contains("another graph"));
  CHECK_THROWS_WITH(layer(df::placeholder<double>(graph, {df::dynamic, 3})),
                    Catch::Matchers::Contains("made for inputs of float, got double"));
  CHECK_THROWS_WITH(layer(df::placeholder<float>(graph, {df::dynamic, 5})), Catch::Matchers::Contains("[3,4]"));
  df::Dense failing(4, {.bias_initializer = nullptr});
  CHECK_THROWS_WITH(failing(df::placeholder<float>(graph, {df::dynamic, 3})), Catch::Matchers::Contains("initializer"));
  CHECK_FALSE(failing.has_variables());
}

TEST_CASE("A layer whose graph is gone refuses every other graph, the one at the same address too") {
  for (int i = 0; i < 20; ++i) {
    df::Dense layer(3);
    {
      df::Graph graph;
      static_cast<void>(layer(df::placeholder<float>(graph, {2, 4})));
    }
    df::Graph graph;
    const auto x = df::placeholder<float>(graph, {2, 4});
    for (int k = 0; k < 40; ++k) static_cast<void>(df::constant(graph, df::Tensor<float>::full({4, 5}, 42.0f)));
    CHECK(layer.has_variables());
    CHECK_THROWS_WITH(layer(x), Catch::Matchers::Contains("another graph"));
  }
  df::Graph graph;
  df::Dense layer(3);
  const auto x = df::placeholder<float>(graph, {2, 4});
  static_cast<void>(layer(x));
  const df::Graph moved = std::move(graph);
  CHECK(layer(x).graph() == moved.store());
}

TEMPLATE_TEST_CASE("A layer that was moved from is the same layer", "", df::Dense, df::BatchNormalization) {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2, 4});
  TestType layer = [] {
    if constexpr (std::is_same_v<TestType, df::Dense>) {
      return df::Dense(3, {.kernel_regularizer = df::regularizer::l2(1)});
    } else {
      return df::BatchNormalization({.gamma_regularizer = df::regularizer::l2(1)});
    }
  }();
  const TestType moved = std::move(layer);
  CHECK_FALSE(layer.has_variables());  // NOLINT(bugprone-use-after-move)
  static_cast<void>(layer(x));
  static_cast<void>(moved(x));
  CHECK(moved.has_variables());
  CHECK(layer.name() == moved.name());
  CHECK(df::trainable_variables(graph).size() == 2);
  CHECK(graph.collection("regularization_losses").size() == 1);
}

TEST_CASE("A call that fails leaves the layer and the collections as they were") {
  df::Graph graph;
  const auto listed = [&] {
    std::size_t nodes = 0;
    for (const char* name : {"variables", "trainable_variables", "regularization_losses", "update_ops"}) {
      nodes += graph.collection(name).size();
    }
    return nodes;
  };
  SECTION("an op of a convolution") {
    const df::Convolution2D layer(4, 3, {.padding = df::Padding::valid, .kernel_regularizer = df::regularizer::l2(1)});
    CHECK_THROWS_AS(layer(df::placeholder<float>(graph, {1, 2, 2, 3})), df::Error);
    CHECK_FALSE(layer.has_variables());
    CHECK(listed() == 0);
    CHECK(layer(df::placeholder<float>(graph, {1, 8, 8, 1})).shape() == df::PartialShape{1, 6, 6, 4});
    CHECK(listed() == 5);
  }
  SECTION("an initializer") {
    bool fails = true;
    const auto initializer = [&fails](df::GraphStore& store, df::DType dtype, const df::Shape& shape) {
      if (fails) throw std::runtime_error("no value");
      return df::init::zeros()(store, dtype, shape);
    };
    const df::Dense layer(3, {.bias_initializer = initializer, .kernel_regularizer = df::regularizer::l2(1)});
    const auto x = df::placeholder<float>(graph, {4, 2});
    CHECK_THROWS_WITH(layer(x), "no value");
    CHECK_FALSE(layer.has_variables());
    CHECK(listed() == 0);
    fails = false;
    static_cast<void>(layer(x));
    CHECK(listed() == 5);
    CHECK(df::global_variables(graph)[0].name() == layer.kernel().name());
  }
  SECTION("a regulariser") {
    const auto itself = [](const df::AnyOutput& variable) { return variable; };
    const df::BatchNormalization layer({.beta_regularizer = itself});
    CHECK_THROWS_AS(layer(df::placeholder<float>(graph, {4, 2})), df::Error);
    CHECK_FALSE(layer.has_variables());
    CHECK(listed() == 0);
  }
  SECTION("the rows of an embedding") {
    const df::Embedding<float> layer(4, 2);
    std::vector<std::int64_t> dims(df::max_rank, 1);
    CHECK_THROWS_AS(layer(df::placeholder<std::int32_t>(graph, df::PartialShape(df::Shape(dims)))), df::Error);
    CHECK_FALSE(layer.has_variables());
    CHECK(listed() == 0);
  }
}

TEST_CASE("A regulariser takes a variable of unknown rank") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph);
  const df::AnyOutput loss = df::regularizer::l1_l2(0.5, 2)(x);
  CHECK(loss.shape() == df::PartialShape{});
  df::Session session(graph);
  CHECK(session.run({{x, df::Tensor<float>({{1, -2}, {3, 0}})}}, df::Output<float>(loss)).scalar() == 3 + 28);
  CHECK(session.run({{x, df::Tensor<float>(-2.0f)}}, df::Output<float>(loss)).scalar() == 1 + 8);
}

TEST_CASE("Regularisers add what Keras adds, and are trained by") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  df::Dense layer(2, {.kernel_initializer = df::init::constant(-0.5),
                      .bias_initializer = df::init::constant(2),
                      .kernel_regularizer = df::regularizer::l2(0.1),
                      .bias_regularizer = df::regularizer::l1_l2(0.25, 0.5)});
  const auto y = layer(x);
  static_cast<void>(layer(x));  // adds nothing again
  static_cast<void>(
      df::dense(df::cast<df::Half>(x), 2,
                {.kernel_initializer = df::init::constant(300), .kernel_regularizer = df::regularizer::l1(0.001)}));
  CHECK(layer.regularization_losses().size() == 2);
  CHECK(graph.collection("regularization_losses").size() == 3);
  const auto loss = df::regularization_loss<float>(graph);
  const auto train = df::train::GradientDescent(1.0f).minimize(loss + 0.0f * df::reduce_sum(y),
                                                               {.variables = {layer.kernel(), layer.bias()}});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  // 0.1 * 6 * 0.25 + 0.25 * 4 + 0.5 * 8 + 0.001 * 1800: sums of |w| and w^2, not halved.
  CHECK(session.run(loss).scalar() == Catch::Approx(0.15 + 1.0 + 4.0 + 1.8));
  CHECK(session.run(df::regularization_loss<double>(graph)).scalar() == Catch::Approx(6.95));
  session.run({{x, df::Tensor<float>::zeros({1, 3})}}, train);
  CHECK(session.run(layer.kernel().as<float>())(0, 0) == Catch::Approx(-0.5 + 0.1));
  CHECK(session.run(layer.bias().as<float>())(1) == Catch::Approx(2 - 0.25 - 2.0));
  df::Graph empty;
  df::Session none(empty);
  CHECK(none.run(df::regularization_loss<float>(empty)).scalar() == 0.0f);
  CHECK_THROWS_WITH(df::regularizer::l2(-1), Catch::Matchers::Contains("factor"));
  df::Dense vector(2, {.kernel_regularizer = [](const df::AnyOutput& variable) { return variable; }});
  CHECK_THROWS_WITH(vector(x), Catch::Matchers::Contains("the regularizer must give a scalar"));
}

// TensorFlow's fused_batch_norm (numpy.mean and numpy.var(ddof=1) too) of the columns [1, 3, 5, 8] and [10, 10, 10,
// 12]; the rows divide alike into any shape.
TEST_CASE("The moving moments of batch normalisation are the same for every rank and way to train") {
  const std::vector<float> rows{1, 10, 3, 10, 5, 10, 8, 12};
  for (const df::Shape& shape :
       {df::Shape{4, 2}, df::Shape{2, 2, 2}, df::Shape{1, 2, 2, 2}, df::Shape{2, 1, 2, 1, 2}}) {
    for (const bool is_fed : {false, true}) {
      df::Graph graph;
      const auto x = df::placeholder<float>(graph, df::PartialShape(shape).with_dim(0, df::dynamic));
      const auto fed = df::placeholder<bool>(graph, {});
      df::BatchNormalization norm({.momentum = 0.5, .epsilon = 0.0625});
      const auto y = norm(x, is_fed ? df::Training(fed) : df::Training(true));
      const auto later = norm(x, df::Training(false));
      CHECK(y.shape() == x.shape());
      CHECK(later.shape() == x.shape());
      CHECK(norm.variables().size() == 4);
      CHECK(norm.trainable_variables().size() == 2);
      const auto updates = graph.collection("update_ops");
      REQUIRE(updates.size() == 2);
      const auto update = df::group(std::span<const df::Operation>(updates));
      const auto dx = df::gradients(df::reduce_sum(df::square(y) * x), x);
      df::Session session(graph);
      session.run(df::initialize_variables(graph));
      const df::Tensor<float> batch(shape, rows);
      const auto [trained, slope] = session.run({{x, batch}, {fed, true}}, y, dx, update);
      INFO(shape.to_string() << (is_fed ? " fed" : ""));
      CHECK(trained.data()[0] == Catch::Approx((1 - 4.25) / std::sqrt(6.6875 + 0.0625)));
      CHECK(trained.data()[7] == Catch::Approx((12 - 10.5) / std::sqrt(0.75 + 0.0625)));
      const auto [mean, variance] = session.run(norm.moving_mean().as<float>(), norm.moving_variance().as<float>());
      CHECK(mean(0) == Catch::Approx(0.5 * 4.25));
      CHECK(mean(1) == Catch::Approx(0.5 * 10.5));
      CHECK(variance(0) == Catch::Approx(0.5 + 0.5 * 8.916666666666666));
      CHECK(variance(1) == Catch::Approx(0.5 + 0.5 * 1.0));
      CHECK(session.run({{x, batch}}, later).data()[0] ==
            Catch::Approx((1 - 0.5 * 4.25) / std::sqrt(0.5 + 0.5 * 8.916666666666666 + 0.0625)));
      // tf.GradientTape of sum(y^2 x) in double, TensorFlow 2, y by tf.nn.moments.
      CHECK(slope.data()[0] == Catch::Approx(3.27692044).epsilon(1e-3));
      CHECK(slope.data()[7] == Catch::Approx(6.03550296).epsilon(1e-3));
    }
  }
}

TEST_CASE("What a batch holds decides nothing when it is not trained on") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  const auto training = df::placeholder<bool>(graph, {});
  df::BatchNormalization norm({.epsilon = 0});
  const auto y = norm(x, training);
  const auto updates = graph.collection("update_ops");
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const float infinity = std::numeric_limits<float>::infinity();
  const df::Tensor<float> batch({{1, 2}, {infinity, 4}, {std::nanf(""), 6}});
  const auto value = session.run({{x, batch}, {training, false}}, y, updates[0], updates[1]);
  CHECK(value(0, 0) == 1.0f);
  CHECK(value(0, 1) == 2.0f);
  CHECK(value(1, 0) == infinity);
  CHECK(std::isnan(value(2, 0)));
  CHECK(value(2, 1) == 6.0f);
  CHECK(session.run(norm.moving_mean().as<float>()).to_string() == "float[2] [0, 0]");
  CHECK(session.run(norm.moving_variance().as<float>()).to_string() == "float[2] [1, 1]");
}

TEST_CASE("An empty batch moves no average of batch normalisation and trains nothing") {
  for (const df::PartialShape& shape : {df::PartialShape{df::dynamic, 2}, df::PartialShape{df::dynamic, 2, 1, 2}}) {
    for (const bool is_fed : {false, true}) {
      INFO(shape.to_string() << (is_fed ? " fed" : ""));
      df::Graph graph;
      const auto x = df::placeholder<float>(graph, shape);
      const auto fed = df::placeholder<bool>(graph, {});
      df::BatchNormalization norm({.training = is_fed ? df::Training(fed) : df::Training(true), .momentum = 0.5});
      const auto y = norm(x);
      const auto train = df::train::GradientDescent(1.0f).minimize(df::reduce_sum(y));
      const auto updates = graph.collection("update_ops");
      const auto update = df::group(std::span<const df::Operation>(updates));
      df::Session session(graph);
      session.run(df::initialize_variables(graph));
      const df::Shape empty = shape.rank() == 2 ? df::Shape{0, 2} : df::Shape{0, 2, 1, 2};
      CHECK(session.run({{x, df::Tensor<float>(empty)}, {fed, true}}, y, train, update).shape() == empty);
      for (const df::AnyVariable& variable : norm.variables()) {
        INFO(variable.name());
        const bool is_one = variable.name().ends_with("gamma") || variable.name().ends_with("variance");
        CHECK(session.run(variable.as<float>()).to_string() == (is_one ? "float[2] [1, 1]" : "float[2] [0, 0]"));
      }
      const df::Shape full = shape.rank() == 2 ? df::Shape{2, 2} : df::Shape{1, 2, 1, 2};
      session.run({{x, df::Tensor<float>(full, {1, 2, 3, 4})}, {fed, true}}, update);
      CHECK(session.run(norm.moving_mean().as<float>()).to_string() == "float[2] [1, 1.5]");
    }
  }
}

TEMPLATE_TEST_CASE("Batch normalisation of 16 bits keeps its variables in float", "", df::Half, df::BFloat16) {
  for (const bool is_fed : {false, true}) {
    df::Graph graph;
    const auto x = df::placeholder<TestType>(graph, {df::dynamic, 1});
    const auto fed = df::placeholder<bool>(graph, {});
    df::BatchNormalization norm({.training = is_fed ? df::Training(fed) : df::Training(true), .momentum = 0.999});
    const auto y = norm(x);
    for (const df::AnyVariable& variable : norm.variables()) CHECK(variable.dtype() == df::DType::float32);
    const auto updates = graph.collection("update_ops");
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    // (x - mean)^2 is 90,000, more than half precision holds.
    const df::Tensor<TestType> batch({2, 1}, std::vector<float>{-300, 300});
    const auto value = session.run({{x, batch}, {fed, true}}, y, updates[0], updates[1]);
    CHECK(static_cast<float>(value(0, 0)) == Catch::Approx(-1.0f).epsilon(1e-2));
    CHECK(session.run(norm.moving_variance().as<float>())(0) == Catch::Approx(0.999 + 0.001 * 180000));
  }
}

TEST_CASE("The table of an embedding serves other layers") {
  df::Graph graph({.seed = 2});
  const auto ids = df::placeholder<std::int64_t>(graph, {df::dynamic});
  const auto few = df::placeholder<std::int32_t>(graph, {df::dynamic});
  df::Embedding<float> words(10, 4);
  const auto vectors = words(ids), again = words(few);
  CHECK(words.table().shape() == df::PartialShape{10, 4});
  CHECK(df::matmul(vectors, words.table(), {.transpose_b = true}).shape() == df::PartialShape{df::dynamic, 10});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto [a, b] = session.run(
      {{ids, df::Tensor<std::int64_t>({1}, {3})}, {few, df::Tensor<std::int32_t>({1}, {3})}}, vectors, again);
  CHECK(df::bitwise_equal(a, b));
}

TEST_CASE("An embedding gathers rows of a trained table") {
  df::Graph graph({.seed = 2});
  auto ids = df::placeholder<std::int64_t>(graph, {df::dynamic});
  auto y = df::embedding<float>(ids, 10, 4);
  CHECK(y.node().name == "embedding/Gather");
  CHECK(y.shape() == df::PartialShape{df::dynamic, 4});
  auto train = df::train::GradientDescent(1.0f).minimize(df::reduce_sum(y));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const df::Tensor<std::int64_t> two({2}, {9, 9});
  const auto before = session.run({{ids, two}}, y);
  session.run({{ids, two}}, train);
  const auto after = session.run({{ids, two}}, y);
  CHECK(after(0, 0) == Catch::Approx(before(0, 0) - 2.0f));
}

TEST_CASE("Accuracy is the share of rows whose largest logit is the label's") {
  df::Graph graph;
  auto logits = df::constant(graph, df::Tensor<float>({4, 2}, {1, 0, 0, 1, 2, 3, 5, 4}));
  auto labels = df::constant(graph, df::Tensor<std::int32_t>({4}, {0, 1, 0, 0}));
  df::Session session(graph);
  CHECK(session.run(df::accuracy(logits, labels)).scalar() == 0.75f);
}

TEST_CASE("Accuracy of rows of any rank is over all rows, whose shape the labels must have") {
  df::Graph graph;
  const auto logits = df::placeholder<float>(graph, {df::dynamic, df::dynamic, 2});
  const auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic, df::dynamic});
  const auto share = df::accuracy(logits, labels);
  df::Session session(graph);
  const df::Tensor<float> given({1, 4, 2}, {1, 0, 0, 1, 2, 3, 5, 4});
  const df::Tensor<std::int32_t> right({1, 4}, {0, 1, 0, 0});
  CHECK(session.run({{logits, given}, {labels, right}}, share).scalar() == 0.75f);
  CHECK(code_of([&] {
          session.run({{logits, given}, {labels, right.reshaped({2, 2})}}, share);
        }) == df::Code::invalid_argument);
}

TEST_CASE("Accuracy is of one label for each row, and of nothing that would be repeated") {
  df::Graph graph;
  const auto logits = df::placeholder<float>(graph, {4, 2}), row = df::placeholder<float>(graph, {2});
  for (const df::Shape& wrong : {df::Shape{}, df::Shape{1}, df::Shape{4, 1}}) {
    INFO(wrong.to_string());
    const auto labels = df::placeholder<std::int32_t>(graph, wrong);
    CHECK_THROWS_WITH(df::accuracy(logits, labels),
                      Catch::Matchers::Contains("wanted [...batch, classes] and [...batch]"));
  }
  const auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  CHECK_THROWS_WITH(df::accuracy(row, labels), Catch::Matchers::Contains("wanted [...batch, classes] and [...batch]"));
  const auto steps = df::placeholder<float>(graph, {df::dynamic, df::dynamic, 2});
  CHECK_THROWS_WITH(df::accuracy(steps, labels),
                    Catch::Matchers::Contains("wanted [...batch, classes] and [...batch]"));
  CHECK(df::accuracy(logits, labels).shape() == df::PartialShape(df::Shape{}));
}

TEST_CASE("Accuracy refuses a step with another number of labels than of rows, whatever was known before") {
  df::Graph graph;
  const auto logits = df::placeholder<float>(graph, {df::dynamic, 2});
  const df::Tensor<float> two_rows({2, 2}, {1, 0, 1, 0});
  for (const df::PartialShape& known :
       {df::PartialShape::unknown(), df::PartialShape{df::dynamic}, df::PartialShape{1}, df::PartialShape{2}}) {
    INFO(known.to_string());
    const auto labels = df::placeholder<std::int64_t>(graph, known);
    const auto share = df::accuracy(logits, labels);
    df::Session session(graph);
    if (known.is_compatible_with({2})) {
      CHECK(
          session.run({{logits, two_rows}, {labels, df::Tensor<std::int64_t>(df::Shape{2}, {0, 1})}}, share).scalar() ==
          0.5f);
    }
    if (known.is_compatible_with({1})) {
      CHECK(code_of([&] {
              session.run({{logits, two_rows}, {labels, df::Tensor<std::int64_t>(df::Shape{1}, {0})}}, share);
            }) == df::Code::invalid_argument);
    }
    if (!known.has_rank()) {
      CHECK(code_of([&] {
              session.run({{logits, two_rows}, {labels, std::int64_t{0}}}, share);
            }) == df::Code::invalid_argument);
    }
  }
}

TEST_CASE("An empty initializer is refused") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  try {
    df::dense(x, 2, {.kernel_initializer = nullptr});
    FAIL("it was built");
  } catch (const df::Error& error) {
    CHECK(error.code() == df::Code::invalid_argument);
    CHECK(std::string(error.what()).find("layers_test.cpp") != std::string::npos);
  }
}

TEST_CASE("An empty edge does not say whether a layer trains") {
  CHECK_THROWS_WITH(df::Training(df::Output<bool>()), Catch::Matchers::Contains("empty Output"));
}
