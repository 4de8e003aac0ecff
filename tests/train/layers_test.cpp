#include <dflow/train/layers.hpp>

#include "catch.hpp"

#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/reduce.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/metrics.hpp>
#include <dflow/train/optimizers.hpp>

#include <cmath>
#include <string>
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

TEST_CASE("An embedding gathers rows of a trained table") {
  df::Graph graph({.seed = 2});
  auto ids = df::placeholder<std::int64_t>(graph, {df::dynamic});
  auto y = df::embedding<float>(ids, 10, 4);
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
