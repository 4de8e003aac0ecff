#include <dflow/train/train.hpp>

#include "catch.hpp"

#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/operators.hpp>

#include <string>

namespace df = dflow;

namespace {

/// Every node of the graph was built by this file.
void check_places(const df::Graph& graph) {
  for (std::size_t i = 0; i < graph.num_nodes(); ++i) {
    const df::Node& node = graph.node(static_cast<df::NodeId>(i));
    INFO(node.op->name << " '" << node.name << "' at " << node.where.file_name() << ":" << node.where.line());
    CHECK(std::string(node.where.file_name()) == __FILE__);
  }
}

}  // namespace

TEST_CASE("Whatever layers, schedules, clipping and optimizers build has a line of the program") {
  df::Graph graph({.seed = 1});
  const auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  const auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  const auto ids = df::placeholder<std::int32_t>(graph, {df::dynamic});
  const df::Training training(df::placeholder<bool>(graph, {}));
  auto x = df::conv2d(images, 4, 3, {.activation = df::Activation::relu});
  x = df::max_pool(x, 2);
  x = df::batch_normalization(x, {.training = training});
  x = df::batch_normalization(x);
  x = df::dropout(x, 0.5f, training);
  x = df::flatten(x);
  x = df::dense(x, 10, {.activation = df::Activation::softplus});
  x = x + df::embedding<float>(ids, 5, 10);
  x = df::clip_by_norm(df::clip_by_value(x, -5.0f, 5.0f), 3.0);
  const auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(x, labels));
  static_cast<void>(df::accuracy(x, labels));

  const df::Variable<std::int64_t> step(graph, 0, {.name = "global_step", .trainable = false});
  const auto rate = df::train::exponential_decay(0.1f, step) + df::train::polynomial_decay(0.1f, step) +
                    df::train::piecewise_constant(step, {10}, {1.0f, 0.1f}) + df::train::cosine_decay(0.1f, step, 100);
  const df::train::Adam adam(rate);
  const df::train::Momentum momentum(rate);
  static_cast<void>(momentum.minimize(loss, {.global_step = step}));
  static_cast<void>(df::train::GradientDescent(0.1f).minimize(loss));
  const auto gradients = df::train::clip_by_global_norm(adam.compute_gradients(loss), 1.0);
  static_cast<void>(adam.apply_gradients(gradients, step));
  static_cast<void>(df::initialize_variables(graph));
  check_places(graph);
}

TEST_CASE("Errors of train functions name the line of the program") {
  df::Graph graph;
  const df::Variable<std::int64_t> step(graph, 0, {.name = "global_step", .trainable = false});
  const auto x = df::placeholder<float>(graph, {2});
  const auto line_of = [](auto&& build) -> unsigned {
    try {
      build();
    } catch (const df::Error& error) {
      CHECK(error.code() == df::Code::invalid_argument);
      CHECK(std::string(error.status().where().file_name()) == __FILE__);
      return error.status().where().line();
    }
    return 0;
  };
  const df::train::GradientDescent descent(0.1f);
  CHECK(line_of([&] { df::train::exponential_decay(0.1f, step, {.decay_steps = 0}); }) == __LINE__);
  CHECK(line_of([&] { df::train::cosine_decay(0.1f, df::Output<std::int64_t>(), 10); }) == __LINE__);
  CHECK(line_of([&] { df::train::piecewise_constant(step, {2, 1}, {1, 2, 3}); }) == __LINE__);
  CHECK(line_of([&] { df::train::global_norm({}); }) == __LINE__);
  CHECK(line_of([&] { df::clip_by_norm(df::Output<float>(), 1.0); }) == __LINE__);
  CHECK(line_of([&] { descent.minimize(df::Output<float>()); }) == __LINE__);
  CHECK(line_of([&] { descent.minimize(x); }) == __LINE__);
}

TEST_CASE("Functions of several nodes that refuse their arguments leave the graph as it was") {
  df::Graph graph({.seed = 1});
  const auto x = df::placeholder<float>(graph, {4, 3});
  const auto wide = df::placeholder<float>(graph, {4, 5});
  const auto images = df::placeholder<float>(graph, {1, 4, 4, 1});
  const auto small = df::placeholder<float>(graph, {1, 4, 4, 2});
  const auto scalar = df::placeholder<std::int32_t>(graph, {});
  const df::Dense dense(2);
  const df::Convolution2D conv(2, 3);
  const df::BatchNormalization normalization;
  const df::GruCell gru(2);
  const df::LstmCell lstm(2);
  static_cast<void>(dense(x));
  static_cast<void>(conv(images));
  static_cast<void>(normalization(x));
  const auto h = gru.zero_state(x);
  const auto state = lstm.zero_state(x);
  static_cast<void>(gru(x, h));
  static_cast<void>(lstm(x, state));
  const auto refuses = [&](std::string_view what, auto&& build) {
    INFO(what);
    const std::size_t before = graph.num_nodes();
    CHECK_THROWS_AS(build(), df::Error);
    CHECK(graph.num_nodes() == before);
  };
  refuses("dense", [&] { dense(wide); });
  refuses("convolution", [&] { conv(small); });
  refuses("batch normalization", [&] { normalization(wide); });
  refuses("gru", [&] { gru(wide, h); });
  refuses("lstm", [&] { lstm(wide, state); });
  refuses("dynamic_rnn", [&] { df::dynamic_rnn(gru, images); });
  refuses("bucket", [&] { df::train::bucket_by_sequence_length(scalar, x, {1, 2}, {3, 4}); });
}
