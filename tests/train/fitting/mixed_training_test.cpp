// Training in 16 bits as a whole: loss scales, with the other ops between gradients and updates, and layers that
// compute in 16 bits.
#include <dflow/train/fitting/loss_scale_optimizer.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/data/from.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/op/import.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/standard_ops.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/clip.hpp>
#include <dflow/train/fitting/accumulated_gradients.hpp>
#include <dflow/train/fitting/fit.hpp>
#include <dflow/train/fitting/moving_average.hpp>
#include <dflow/train/layers.hpp>
#include <dflow/train/metrics.hpp>
#include <dflow/train/optimizers.hpp>
#include <dflow/train/saving/saver.hpp>
#include <dflow/train/variables/variable_scope.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

constexpr float overflow = std::numeric_limits<float>::infinity();

/// w = [3, 4], and a loss with a gradient of w times a fed factor.
struct Squared {
  df::Graph graph;
  df::Variable<float> w{graph, df::Tensor<float>(df::Shape{2}, {3, 4}), {.name = "w"}};
  df::Output<float> factor = df::placeholder<float>(graph, {});
  df::Output<float> loss = df::reduce_sum(w * w) * 0.5f * factor;
  df::Variable<std::int64_t> global_step{graph, 0, {.name = "global_step", .trainable = false}};
};

/// Points of two arms of a spiral.
struct Spirals {
  explicit Spirals(std::int64_t n) : points({n, 2}), arms(df::Shape{n}) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double turn = 0.5 + 4.0 * static_cast<double>(i) / static_cast<double>(n), arm = i % 2 == 0 ? 1 : -1;
      points(i, 0) = static_cast<float>(arm * turn * std::cos(turn) / 3);
      points(i, 1) = static_cast<float>(arm * turn * std::sin(turn) / 3);
      arms(i) = static_cast<std::int32_t>(i % 2);
    }
  }
  df::Tensor<float> points;
  df::Tensor<std::int32_t> arms;
};

/// A perceptron with layers that compute in `compute`, if that is valid.
struct Perceptron {
  explicit Perceptron(df::DType compute) : graph({.seed = 7}) {
    const df::VariableScope scope(graph, "", {.compute = compute});
    const auto hidden = df::dense(points, 32, {.activation = df::Activation::relu});
    const auto upper = df::dense(hidden, 32, {.activation = df::Activation::relu});
    const auto logits = df::dense(upper, 2);
    loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, arms));
    accuracy = df::accuracy(logits, arms);
  }
  double accuracy_after(const df::Operation& train, int steps) {
    const Spirals data(192);
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    const auto step = session.prepare(df::feeds(points, arms), df::fetches(train));
    for (int i = 0; i < steps; ++i) step(data.points, data.arms);
    return session.run({{points, data.points}, {arms, data.arms}}, accuracy).scalar();
  }

  df::Graph graph;
  df::Output<float> points = df::placeholder<float>(graph, {df::dynamic, 2});
  df::Output<std::int32_t> arms = df::placeholder<std::int32_t>(graph, {df::dynamic});
  df::Output<float> loss, accuracy;
};

}  // namespace

TEST_CASE("gradients are clipped when they have been divided by the scale, and none that is bad is hidden by it") {
  Squared model;
  const df::train::LossScaleOptimizer optimizer(df::train::GradientDescent(1.0));
  const auto gradients = optimizer.compute_gradients(model.loss);
  const auto by_norm = optimizer.apply_gradients(df::train::clip_by_global_norm(gradients, 2.5), model.global_step);
  auto by_value = gradients;
  by_value[0].gradient.dense = df::clip_by_value(df::Output<float>(gradients[0].gradient.dense), -1.0f, 1.0f);
  const auto clipped = optimizer.apply_gradients(by_value, model.global_step);
  df::Session session(model.graph);
  session.run(df::initialize_variables(model.graph));
  session.run({{model.factor, 1.0f}}, by_norm);  // the norm is 5
  CHECK(session.run(model.w)(0) == Approx(1.5));
  CHECK(session.run(model.w)(1) == Approx(2));
  session.run({{model.factor, 10.0f}}, clipped);
  CHECK(session.run(model.w)(0) == Approx(0.5));
  CHECK(session.run(model.w)(1) == Approx(1));
  const auto before = session.run(model.w);
  for (const df::Operation& each : {by_norm, clipped}) session.run({{model.factor, overflow}}, each);
  CHECK(df::bitwise_equal(session.run(model.w), before));
  CHECK(session.run(model.global_step).scalar() == 2);
  CHECK(session.run(optimizer.scale()).scalar() == 32768 / 4);
}

TEST_CASE("a bad batch skips the update of all that were accumulated, and the next ones begin with nothing") {
  Squared model;
  const df::train::LossScaleOptimizer optimizer(df::train::Momentum(0.25));
  const df::train::AccumulatedGradients accumulated(optimizer, model.loss, {.global_step = model.global_step});
  df::Session session(model.graph);
  session.run(df::initialize_variables(model.graph));
  const auto update_of = [&](std::initializer_list<float> factors) {
    for (const float factor : factors) session.run({{model.factor, factor}}, accumulated.add());
    session.run(accumulated.update());
    return session.run(model.w)(0);
  };
  CHECK(update_of({1, overflow, 1}) == 3.0f);
  CHECK(session.run(optimizer.scale()).scalar() == 16384);
  CHECK(session.run(model.global_step).scalar() == 0);
  CHECK(update_of({1, 3}) == 1.5f);
  CHECK(session.run(model.global_step).scalar() == 1);
  CHECK(session.run(optimizer.good_steps()).scalar() == 1);
}

TEST_CASE("moving averages go with a loss scale") {
  Squared model;
  const df::train::LossScaleOptimizer optimizer(df::train::GradientDescent(0.5));
  auto train = optimizer.minimize(model.loss, {.global_step = model.global_step});
  df::train::ExponentialMovingAverage averages(0.5);
  {
    const auto after = model.graph.control_dependencies({train});
    train = averages.apply({model.w.any_variable()});
  }
  df::Session session(model.graph);
  session.run(df::initialize_variables(model.graph));
  session.run({{model.factor, 1.0f}}, train);
  CHECK(session.run(averages.average(model.w))(0) == 2.25f);
  session.run({{model.factor, overflow}}, train);
  CHECK(session.run(model.w)(0) == 1.5f);
  CHECK(session.run(averages.average(model.w))(0) == 1.875f);
}

TEST_CASE("a run with a loss scale that was saved and restored elsewhere goes on bit for bit") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const auto fresh = [&](const df::Graph& graph) {
    const auto devices = df::cpu_devices(1, {.pool = std::make_shared<df::InlinePool>()});
    df::set_device_files(devices[0]->context(), files);
    return df::Session(graph, {.devices = devices});
  };
  struct Run : Squared {
    df::train::LossScaleOptimizer optimizer{df::train::Adam(0.1),
                                            df::train::LossScale::dynamic({.initial = 256, .growth_interval = 3})};
    df::Operation train = optimizer.minimize(loss, {.global_step = global_step});
    df::Operation initialize = df::initialize_variables(graph);
    std::vector<float> steps(df::Session& session, int from, int to) const {
      std::vector<float> seen;
      for (int i = from; i < to; ++i) {
        session.run({{factor, i % 5 == 2 ? overflow : static_cast<float>(i)}}, train);
        const auto [value, scale, good] = session.run(w, optimizer.scale(), optimizer.good_steps());
        seen.insert(seen.end(), {value(0), value(1), scale.scalar(), static_cast<float>(good.scalar())});
      }
      return seen;
    }
  };
  Run whole, first, second;
  df::train::Saver saver(first.graph, {.files = files}), restorer(second.graph, {.files = files});
  df::Session undisturbed = fresh(whole.graph), before = fresh(first.graph), after = fresh(second.graph);
  undisturbed.run(whole.initialize);
  before.run(first.initialize);
  std::vector<float> parts = first.steps(before, 0, 9);
  restorer.restore(after, saver.save(before, "/m"));
  const std::vector<float> rest = second.steps(after, 9, 20);
  parts.insert(parts.end(), rest.begin(), rest.end());
  CHECK(parts == whole.steps(undisturbed, 0, 20));
}

TEST_CASE("a step with a loss scale is made across devices, and in a graph that was exported and imported") {
  df::Graph graph;
  std::vector<df::Variable<float>> parts;
  for (const char* const device : {"/device:CPU:0", "/device:CPU:1"}) {
    const auto there = graph.device(device);
    parts.emplace_back(graph, df::Tensor<float>::full({2}, 1),
                       df::VariableOptions{.name = "w" + std::string(device + 12)});
  }
  const auto factor = df::placeholder<float>(graph, {}, {.name = "factor"});
  const auto loss = df::reduce_sum(parts[0] * parts[1]) * factor;
  const df::train::LossScaleOptimizer optimizer(df::train::Momentum(0.25));
  static_cast<void>(optimizer.minimize(loss, {}, {.name = "train"}));
  static_cast<void>(df::initialize_variables(graph, {.name = "initialize"}));
  const df::Graph imported = df::import_graph(df::to_graph_def(graph), df::standard_op_table());
  for (const df::Graph* const each : {&static_cast<const df::Graph&>(graph), &imported}) {
    df::Session session(*each, {.devices = df::cpu_devices(2, {})});
    const df::Output<float> fed(each->find("factor").node().outputs.empty()
                                    ? df::AnyOutput()
                                    : df::AnyOutput(each->store(), {each->find("factor").node_id(), 0}));
    const auto value = [&](const char* name) {
      return session.run(df::Variable<float>(df::AnyVariable::of(each->find(name))));
    };
    session.run(each->find("initialize"));
    session.run({{fed, 1.0f}}, each->find("train"));
    session.run({{fed, overflow}}, each->find("train"));
    CHECK(value("w0")(0) == 0.75f);
    CHECK(value("w1")(1) == 0.75f);
    CHECK(value("current_loss_scale").scalar() == 16384);
  }
}

TEST_CASE("gradients of float16 that vanish without a loss scale do not with it") {
  const auto moved = [](bool is_scaled) {
    df::Graph graph;
    const df::Variable<float> w(graph, df::Tensor<float>::full({4}, 1));
    const auto x = df::constant(graph, df::Tensor<df::Half>::full({4}, df::Half(0.5f)));
    const auto loss = df::reduce_sum(df::cast<float>(df::cast<df::Half>(w) * x)) * 1e-8f;
    const df::train::GradientDescent descent(1e8);
    const auto train = is_scaled ? df::train::LossScaleOptimizer(descent).minimize(loss) : descent.minimize(loss);
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    session.run(train);
    return 1.0f - session.run(w)(0);
  };
  CHECK(moved(false) == 0);  // 1e-8 is less than half of the smallest number, 2^-24
  CHECK(moved(true) == Approx(0.5).epsilon(1e-3));
}

TEST_CASE("a perceptron in 16 bits learns what one in float does, in float16 by its loss scale") {
  // The loss is so small that float16 cannot represent its gradients.
  const auto accuracy = [](df::DType compute, bool is_scaled) {
    Perceptron model(compute);
    const df::train::Adam adam(0.01, 0.9, 0.999, 1e-14);
    const auto loss = model.loss * 1e-6f;
    const auto train = is_scaled ? df::train::LossScaleOptimizer(
                                       adam, df::train::LossScale::dynamic({.initial = 0x1p24, .growth_interval = 50}))
                                       .minimize(loss)
                                 : adam.minimize(loss);
    return model.accuracy_after(train, 300);
  };
  const double in_float = accuracy(df::DType::invalid, false);
  CHECK(in_float > 0.98);
  CHECK(accuracy(df::DType::invalid, true) > in_float - 0.01);
  CHECK(accuracy(df::DType::float16, true) > in_float - 0.01);
  CHECK(accuracy(df::DType::float16, false) < 0.9);
  CHECK(accuracy(df::DType::bfloat16, false) > in_float - 0.02);
}

TEST_CASE("fit trains layers that compute in bfloat16, with variables of float") {
  Perceptron model(df::DType::bfloat16);
  for (const df::AnyVariable& variable : df::trainable_variables(model.graph)) {
    CHECK(variable.dtype() == df::DType::float32);
  }
  CHECK(model.graph.find("dense/kernel").is_valid());
  CHECK(model.graph.find("dense/MatMul").node().outputs[0].dtype == df::DType::bfloat16);
  // The next layer takes the bfloat16 output of a layer directly, without a cast to float.
  CHECK(model.graph.find("dense_1/MatMul").node().inputs[0].node == model.graph.find("dense/Relu").node_id());
  const auto train = df::train::LossScaleOptimizer(df::train::Adam(0.01)).minimize(model.loss);
  df::Session session(model.graph);
  session.run(df::initialize_variables(model.graph));
  const Spirals data(192);
  const auto rows = df::data::from_tensors(data.points, data.arms).shuffle(192, {.seed = 3}).batch(32);
  const df::train::TrainStep step(df::feeds(model.points, model.arms), model.loss, train,
                                  {.metrics = {{"accuracy", model.accuracy}}});
  const df::train::History history = df::train::fit(session, step, rows, {.epochs = 60});
  CHECK(history.last("accuracy") > 0.97);
  CHECK(history.last("loss") < 0.1);
}

TEST_CASE("a scope says what layers compute in, each call by itself") {
  df::Graph graph({.seed = 1});
  const auto images = df::placeholder<float>(graph, {df::dynamic, 4, 4, 2});
  const auto wide = df::placeholder<double>(graph, {df::dynamic, 3});
  const auto narrow = df::placeholder<df::Half>(graph, {df::dynamic, 3});
  const df::Convolution2D convolution(3, 2);
  const df::Dense of_narrow(2);
  df::Output<float> in_half, in_float, again;
  {
    const df::VariableScope scope(graph, "", {.compute = df::DType::float16});
    in_half = convolution(images);
    CHECK(df::dense(wide, 2, {}, {.name = "wide"}).dtype() == df::DType::float64);
    CHECK(graph.find("wide/kernel").node().outputs[0].shape == df::PartialShape{3, 2});
    CHECK(df::AnyVariable::of(graph.find("wide/kernel")).dtype() == df::DType::float64);
    CHECK(of_narrow(narrow).dtype() == df::DType::float16);
    CHECK(of_narrow.kernel().dtype() == df::DType::float32);
    const df::VariableScope inside(graph, "", {.compute = df::DType::float32});
    in_float = convolution(images);
  }
  again = convolution(images);
  CHECK(of_narrow(narrow, {.name = "later"}).dtype() == df::DType::float16);
  CHECK(convolution.kernel().dtype() == df::DType::float32);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  df::Tensor<float> x({1, 4, 4, 2});
  for (int i = 0; i < 32; ++i) x.data()[i] = std::sin(static_cast<float>(i));
  const auto [half, full, same] = session.run({{images, x}}, in_half, in_float, again);
  CHECK(df::bitwise_equal(full, same));
  CHECK_FALSE(df::bitwise_equal(full, half));
  for (std::int64_t i = 0; i < half.num_elements(); ++i) {
    CHECK(half.data()[i] == Approx(full.data()[i]).epsilon(2e-3).margin(2e-3));
  }
  CHECK(contains(error_of([&] { df::VariableScope bad(graph, "s", {.compute = df::DType::float64}); }),
                 "float16, bfloat16 or float32"));
}
