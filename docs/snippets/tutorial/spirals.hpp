// What the three programs of docs/tutorial.md share: the points and the model.

// [points]
#pragma once

#include <dflow/dflow.hpp>

#include <cmath>
#include <cstdint>
#include <random>

namespace df = dflow;

struct Points {
  df::Tensor<float> x;              // [count, 2]
  df::Tensor<std::int32_t> labels;  // [count]: the arm of each point, 0 or 1
};

// Random points on two spirals that wind around each other.
inline Points make_points(std::int64_t count, unsigned seed) {
  Points points{df::Tensor<float>({count, 2}), df::Tensor<std::int32_t>({count})};
  std::mt19937 random(seed);
  for (std::int64_t i = 0; i < count; ++i) {
    const int arm = random() % 2 == 0 ? 0 : 1;
    const float radius = 0.1f + static_cast<float>(random() % 1000) / 1000;
    const float angle = 6 * radius + (arm == 0 ? 0.0f : 3.14159f);
    points.x(i, 0) = radius * std::cos(angle);
    points.x(i, 1) = radius * std::sin(angle);
    points.labels(i) = arm;
  }
  return points;
}
// [points]

// [model]
struct Model {
  df::Output<float> x, logits, loss, accuracy;
  df::Output<std::int32_t> labels;

  explicit Model(df::Graph& graph) {
    x = df::placeholder<float>(graph, {df::dynamic, 2});
    auto hidden = df::dense(x, 32, {.activation = df::Activation::tanh});
    hidden = df::dense(hidden, 32, {.activation = df::Activation::tanh});
    logits = df::dense(hidden, 2);
    labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
    loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
    accuracy = df::accuracy(logits, labels);
  }
};
// [model]
