#include <dflow/train/fitting/loss_scale_optimizer.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/optimizers.hpp>
#include <dflow/train/schedules.hpp>
#include <dflow/train/weight_decay.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

constexpr float infinite_slope = std::numeric_limits<float>::infinity();

/// w = [1, -2], and a loss with the gradient `slope` [0.5, -0.25], fed.
struct Sloped {
  df::Graph graph;
  df::Variable<float> w{graph, df::Tensor<float>(df::Shape{2}, {1, -2}), {.name = "w"}};
  df::Output<float> slope = df::placeholder<float>(graph, {});
  df::Output<float> loss = df::reduce_sum(w * df::constant<float>(graph, {0.5f, -0.25f}) * slope);
  df::Variable<std::int64_t> global_step{graph, 0, {.name = "global_step", .trainable = false}};
};

/// The bytes of all variables, by name.
std::map<std::string, std::string> bytes_of_variables(df::Session& session, const df::Graph& graph) {
  std::map<std::string, std::string> bytes;
  for (const df::AnyVariable& variable : df::global_variables(graph)) {
    const df::AnyTensor value = session.run(variable.read_edge());
    bytes[variable.name()] = std::string(static_cast<const char*>(value.raw_data()), value.bytes());
  }
  return bytes;
}

}  // namespace

// torch.amp.GradScaler("cpu", init_scale=1024, growth_interval=3) of PyTorch 2.15 around SGD(lr=0.25, momentum=0.5): a
// gradient of (i + 1) [0.5, -0.25] in step i, infinite in the steps 3, 6, 7 and 14. After each: get_scale(),
// _get_growth_tracker(), w[0], w[1].
TEST_CASE("a dynamic loss scale goes as PyTorch's, and so do the variables") {
  constexpr double expected[16][4] = {{1024, 1, 0.875, -1.9375},
                                      {1024, 2, 0.5625, -1.78125},
                                      {2048, 0, 0.03125, -1.515625},
                                      {1024, 0, 0.03125, -1.515625},
                                      {1024, 1, -0.859375, -1.0703125},
                                      {1024, 2, -2.0546875, -0.47265625},
                                      {512, 0, -2.0546875, -0.47265625},
                                      {256, 0, -2.0546875, -0.47265625},
                                      {256, 1, -3.77734375, 0.388671875},
                                      {256, 2, -5.888671875, 1.4443359375},
                                      {512, 0, -8.3193359375, 2.65966796875},
                                      {512, 1, -11.03466796875, 4.017333984375},
                                      {512, 2, -14.017333984375, 5.5086669921875},
                                      {1024, 0, -17.2586669921875, 7.12933349609375},
                                      {512, 0, -17.2586669921875, 7.12933349609375},
                                      {512, 1, -20.87933349609375, 8.939666748046875}};
  Sloped model;
  const df::train::LossScaleOptimizer optimizer(df::train::Momentum(0.25, 0.5),
                                                df::train::LossScale::dynamic({.initial = 1024, .growth_interval = 3}));
  const auto train = optimizer.minimize(model.loss, {.global_step = model.global_step});
  df::Session session(model.graph);
  session.run(df::initialize_variables(model.graph));
  std::int64_t made = 0;
  for (int i = 0; i < 16; ++i) {
    CAPTURE(i);
    const bool is_bad = i == 3 || i == 6 || i == 7 || i == 14;
    session.run({{model.slope, is_bad ? infinite_slope : static_cast<float>(i + 1)}}, train);
    const auto [scale, good, w, step] =
        session.run(optimizer.scale(), optimizer.good_steps(), model.w, model.global_step);
    CHECK(scale.scalar() == expected[i][0]);
    CHECK(good.scalar() == expected[i][1]);
    CHECK(w(0) == expected[i][2]);
    CHECK(w(1) == expected[i][3]);
    if (!is_bad) ++made;
    CHECK(step.scalar() == made);
  }
}

TEST_CASE("a step with an infinite gradient changes nothing but the scale, bit for bit") {
  Sloped model;
  const df::Variable<df::Half> half(model.graph, df::Tensor<df::Half>::full({3}, df::Half(1.0f)), {.name = "half"});
  const df::Variable<float> table(model.graph, df::Tensor<float>::full({4, 2}, 1), {.name = "table"});
  const df::Variable<double> wide(model.graph, df::Tensor<double>::full({2}, 1), {.name = "wide"});
  const auto rows = df::gather(table, df::constant<std::int32_t>(model.graph, {1, 3}));
  const auto loss = model.loss + df::reduce_sum(df::cast<float>(half * half)) + df::reduce_sum(rows * rows) +
                    df::cast<float>(df::reduce_sum(wide * wide));
  const auto rate = df::train::exponential_decay(0.1, model.global_step, {.decay_steps = 1, .decay_rate = 0.5});
  // The gradient of `half` is infinite in float16 by a scale above 2^14.
  const df::train::LossScaleOptimizer optimizer(df::train::AdamW(rate, 0.1),
                                                df::train::LossScale::dynamic({.initial = 1024}));
  const auto train = optimizer.minimize(loss, {.global_step = model.global_step});
  df::Session session(model.graph);
  session.run(df::initialize_variables(model.graph));
  for (int i = 0; i < 3; ++i) session.run({{model.slope, 1.0f}}, train);
  CHECK(session.run(optimizer.good_steps()).scalar() == 3);
  const auto of_model = [&] {
    auto bytes = bytes_of_variables(session, model.graph);
    CHECK(bytes.erase("current_loss_scale") + bytes.erase("good_steps") == 2);
    return bytes;
  };
  const auto before = of_model();
  for (const char* const name : {"w/Adam", "half/master/Adam", "table/Adam_1", "wide/Adam", "AdamW/beta1_power"}) {
    INFO(name);
    CHECK(before.contains(name));
  }
  double scale = 1024;
  for (const float slope : {infinite_slope, -infinite_slope, std::nanf("")}) {
    session.run({{model.slope, slope}}, train);
    CHECK(of_model() == before);
    CHECK(session.run(optimizer.scale()).scalar() == (scale /= 2));
    CHECK(session.run(optimizer.good_steps()).scalar() == 0);
  }
  session.run({{model.slope, 1.0f}}, train);
  CHECK(of_model() != before);
  CHECK(session.run(model.global_step).scalar() == 4);
  CHECK(session.run(optimizer.good_steps()).scalar() == 1);
}

TEST_CASE("without a bad gradient variables are those of the optimizer alone") {
  const auto trained = [](bool is_scaled) {
    Sloped model;
    const df::Variable<double> wide(model.graph, df::Tensor<double>::full({2}, 1), {.name = "wide"});
    const auto loss = model.loss * model.loss + df::cast<float>(df::reduce_sum(wide * wide));
    const df::train::Adam adam(0.1);
    const auto train = is_scaled
                           ? df::train::LossScaleOptimizer(adam).minimize(loss, {.global_step = model.global_step})
                           : adam.minimize(loss, {.global_step = model.global_step});
    df::Session session(model.graph);
    session.run(df::initialize_variables(model.graph));
    for (int i = 0; i < 20; ++i) session.run({{model.slope, 0.1f * static_cast<float>(i)}}, train);
    auto bytes = bytes_of_variables(session, model.graph);
    CHECK(bytes.erase("current_loss_scale") + bytes.erase("good_steps") == (is_scaled ? 2 : 0));
    return bytes;
  };
  CHECK(trained(true) == trained(false));  // by powers of two nothing is rounded
}

TEST_CASE("a loss scale is at least its minimum, stays finite, and a fixed one stays") {
  const auto scales = [](const df::train::LossScale& scale, const std::vector<float>& slopes) {
    Sloped model;
    const df::train::LossScaleOptimizer optimizer(df::train::GradientDescent(0.5), scale);
    const auto train = optimizer.minimize(model.loss);
    df::Session session(model.graph);
    session.run(df::initialize_variables(model.graph));
    std::vector<float> values;
    float good = 0;
    for (const float slope : slopes) {
      if (std::isfinite(slope)) good += slope;
      session.run({{model.slope, slope}}, train);
      values.push_back(session.run(optimizer.scale()).scalar());
      CHECK(std::isfinite(session.run(model.w)(0)));
    }
    CHECK(session.run(model.w)(0) == 1.0f - 0.25f * good);
    return values;
  };
  using df::train::LossScale;
  const float bad = infinite_slope;
  CHECK(scales(LossScale::dynamic({.initial = 3}), {bad, bad, bad, 1}) == std::vector<float>{1.5f, 1, 1, 1});
  CHECK(scales(LossScale::dynamic({.initial = 8, .growth_factor = 3, .backoff_factor = 0.25, .growth_interval = 1}),
               {bad, 1, bad}) == std::vector<float>{2, 6, 1.5f});
  CHECK(scales(LossScale::dynamic({.initial = 0x1p127, .growth_interval = 1}), {0x1p-126f}).back() == 0x1p127f);
  CHECK(scales(LossScale::fixed(100), {bad, 1}) == std::vector<float>{100, 100});
}

TEST_CASE("a loss scale and its optimizer refuse what makes no sense") {
  using df::train::LossScale;
  using df::train::LossScaleOptimizer;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const df::train::DynamicLossScaleOptions& options : {df::train::DynamicLossScaleOptions{.initial = 0},
                                                            {.initial = -1},
                                                            {.initial = infinity},
                                                            {.initial = 1e39},
                                                            {.initial = 0.5},
                                                            {.growth_factor = 0.5},
                                                            {.growth_factor = infinity},
                                                            {.backoff_factor = 0},
                                                            {.backoff_factor = 1.5},
                                                            {.growth_interval = 0},
                                                            {.minimum = 0},
                                                            {.initial = std::nan("")}}) {
    CHECK(contains(error_of([&] { return LossScale::dynamic(options); }), "LossScale: initial"));
  }
  CHECK(code_of([] { return LossScale::fixed(1e-50); }) == df::Code::invalid_argument);
  CHECK(LossScale::fixed(0.5).options().initial == 0.5);

  CHECK(code_of([] { LossScaleOptimizer none(std::shared_ptr<const df::train::Optimizer>{}); }) ==
        df::Code::invalid_argument);
  const auto once = std::make_shared<const LossScaleOptimizer>(df::train::GradientDescent(0.1));
  CHECK(contains(error_of([&] { LossScaleOptimizer twice(once); }), "a loss is scaled once"));

  CHECK(code_of([&] { return once->scale(); }) == df::Code::failed_precondition);
  Sloped model, other;
  const df::train::DecoupledWeightDecay outside(once, 0.1, 0.1);
  CHECK(contains(error_of([&] { return outside.minimize(model.loss); }), "LossScaleOptimizer(AdamW(1e-3))"));
  CHECK(contains(error_of([&] { return once->minimize(df::Output<float>()); }), "the loss is an empty Output"));
  static_cast<void>(once->minimize(model.loss));
  CHECK(once->scale().name() == "current_loss_scale/read");
  CHECK(contains(error_of([&] { return once->minimize(other.loss); }), "of another graph"));
  const LossScaleOptimizer fixed(df::train::GradientDescent(0.1), LossScale::fixed(8));
  static_cast<void>(fixed.minimize(other.loss));
  CHECK(code_of([&] { return fixed.good_steps(); }) == df::Code::failed_precondition);
}

TEST_CASE("a loss scale begins anew in another graph when the first one is gone") {
  const df::train::LossScaleOptimizer optimizer(df::train::GradientDescent(0.5));
  for (int i = 0; i < 2; ++i) {
    Sloped model;
    const auto train = optimizer.minimize(model.loss);
    df::Session session(model.graph);
    session.run(df::initialize_variables(model.graph));
    session.run({{model.slope, 1.0f}}, train);
    CHECK(session.run(model.w)(0) == 0.75f);
    CHECK(session.run(optimizer.good_steps()).scalar() == 1);
  }
}
