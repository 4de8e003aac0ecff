#include <dflow/train/weight_decay.hpp>

#include "catch.hpp"

#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/schedules.hpp>

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

namespace df = dflow;

namespace {

/// Three steps from w = [1, -2, 0.5] with the gradients 2 w + k [0.1, 0.2, 0.3].
std::vector<df::Tensor<float>> three_steps(const df::train::Optimizer& optimizer) {
  df::Graph graph;
  const df::Variable<float> w(graph, df::Tensor<float>(df::Shape{3}, {1, -2, 0.5f}), {.name = "w"});
  const auto k = df::placeholder<float>(graph, {});
  const auto train = optimizer.minimize(df::reduce_sum(w * w + w * df::constant<float>(graph, {0.1f, 0.2f, 0.3f}) * k));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  std::vector<df::Tensor<float>> values;
  for (int i = 1; i <= 3; ++i) {
    session.run({{k, static_cast<float>(i)}}, train);
    values.push_back(session.run(w));
  }
  return values;
}

void check(const std::vector<df::Tensor<float>>& values, const float (&expected)[3][3]) {
  for (std::size_t i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) CHECK(values[i](j) == Approx(expected[i][j]).margin(2e-6));
  }
}

}  // namespace

TEST_CASE("AdamW and SGDW are Keras's") {
  // keras.optimizers of Keras 3.15: AdamW(0.1, weight_decay=0.2, epsilon=1e-8), SGD(0.1, momentum=0.9,
  // weight_decay=0.2), SGD(0.1, weight_decay=0.2).
  check(three_steps(df::train::AdamW(0.1, 0.2)), {{0.8800007105f, -1.8600007296f, 0.3900007010f},
                                                  {0.7626407743f, -1.7233788967f, 0.2820906937f},
                                                  {0.6480366588f, -1.5905803442f, 0.1761544049f}});
  check(three_steps(df::train::SGDW(0.1, 0.2)), {{0.7700000405f, -1.5800000429f, 0.3600000143f},
                                                 {0.3916000426f, -0.9304000735f, 0.1037999988f},
                                                 {-0.0512519777f, -0.2295120955f, -0.2331359982f}});
  check(three_steps(df::train::SGDW(0.1, 0.2, 0.0)), {{0.7700000405f, -1.5800000429f, 0.3600000143f},
                                                      {0.5806000233f, -1.2724000216f, 0.2207999974f},
                                                      {0.4228680134f, -1.0524721146f, 0.0822239816f}});
}

TEST_CASE("decay goes with any optimizer, with schedules, and leaves out what it is told to") {
  df::Graph graph;
  const df::Variable<std::int64_t> step(graph, 0, {.trainable = false});
  const df::Variable<double> matrix(graph, df::Tensor<double>::full({1, 1}, 1)),
      bias(graph, df::Tensor<double>::full({1}, 1));
  const auto rate = df::train::piecewise_constant<double>(step, {0}, {0.5, 0.25});
  const df::train::DecoupledWeightDecay optimizer(
      std::make_shared<df::train::GradientDescent>(rate), rate, 0.5,
      {.applies_to = [](const df::AnyVariable& variable) { return variable.shape().rank() > 1; }});
  const auto train =
      optimizer.minimize(df::reduce_sum(matrix) * 0.0 + df::reduce_sum(bias) * 0.0, {.global_step = step});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(train);
  CHECK(session.run(matrix)(0, 0) == 0.75);
  session.run(train);
  CHECK(session.run(matrix)(0, 0) == 0.75 * 0.875);
  CHECK(session.run(bias)(0) == 1);
}

TEST_CASE("variables with sparse gradients and of 16 bits decay whole") {
  df::Graph graph;
  const df::Variable<float> table(graph, df::Tensor<float>::full({3, 1}, 1));
  const df::Variable<df::BFloat16> half(graph, df::Tensor<df::BFloat16>::full({2}, df::BFloat16(1.0f)));
  const auto loss = df::reduce_sum(df::gather(table, df::constant<std::int32_t>(graph, {1}))) +
                    df::reduce_sum(df::cast<float>(half)) * 0.0f;
  const auto train = df::train::SGDW(0.5, 0.5, 0.0).minimize(loss);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(train);
  const auto rows = session.run(table);
  CHECK(rows(0, 0) == 0.75f);
  CHECK(rows(1, 0) == 0.25f);
  CHECK(static_cast<float>(session.run(half)(1)) == 0.75f);
}
