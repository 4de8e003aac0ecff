#pragma once

#include <dflow/dflow.hpp>

#include "contestant.hpp"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>

/// Training steps of small models on synthetic data, as rows of a contest.
namespace dflow::bench {

using Images = Output<float>;
inline constexpr auto relu_activation = Activation::relu;

inline Images tiny(const Images& x) { return dense(dense(x, 16, {.activation = relu_activation}), 10); }

inline Images mlp(const Images& x) {
  return dense(dense(dense(x, 512, {.activation = relu_activation}), 512, {.activation = relu_activation}), 10);
}

inline Images lenet(const Images& x) {
  auto low = max_pool(conv2d(x, 32, 5, {.activation = relu_activation}), 2);
  auto high = max_pool(conv2d(low, 64, 5, {.activation = relu_activation}), 2);
  return dense(dense(flatten(high), 512, {.activation = relu_activation}), 10);
}

/// Over x [time, batch, inputs].
inline Images lstm(const Images& x) {
  const LstmCell cell(256, {.forget_bias = 0});
  const auto [outputs, state] = dynamic_rnn(cell, x, {.time_major = true});
  return dense(std::get<1>(state), 10);
}

/// A step that is fed its batch and gives its loss. `options` are of the session; nodes are built under `device`, if
/// any.
inline void add_training(Contestant& rows, const char* name, const Shape& shape, Images (*model)(const Images&),
                         bool use_adam, const SessionOptions& options, const std::string& device = {}) {
  struct Training {
    Graph graph{{.seed = 1}};
    std::unique_ptr<Session> session;
    Tensor<float> x;
    Tensor<std::int32_t> y;
  };
  rows.row(name, [=] {
    auto training = std::make_shared<Training>();
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    training->x = Tensor<float>(shape);
    for (float& value : training->x.span()) value = normal(random);
    training->y = Tensor<std::int32_t>({shape[0]});
    for (auto& value : training->y.span()) value = static_cast<std::int32_t>(random() % 10);

    const auto on = training->graph.device(device);
    const auto x = placeholder<float>(training->graph, shape);
    const auto y = placeholder<std::int32_t>(training->graph, {shape[0]});
    const auto loss = reduce_mean(sparse_softmax_cross_entropy(model(x), y));
    const auto update = use_adam ? train::Adam(1e-4f).minimize(loss) : train::GradientDescent(0.01f).minimize(loss);
    training->session = std::make_unique<Session>(training->graph, options);
    training->session->run(initialize_variables(training->graph));
    using Step = decltype(training->session->prepare(feeds(x, y), fetches(loss, update)));
    auto step = std::make_shared<Step>(training->session->prepare(feeds(x, y), fetches(loss, update)));
    return [training, step] { (*step)(training->x, training->y); };
  });
}

/// Adds all trainings; a training that runs loops is added only if `has_loops` is set.
inline void add_trainings(Contestant& rows, const SessionOptions& options, bool has_loops,
                          const std::string& device = {}) {
  add_training(rows, "tiny sgd", {8, 16}, tiny, false, options, device);
  add_training(rows, "mlp sgd", {128, 784}, mlp, false, options, device);
  add_training(rows, "mlp adam", {128, 784}, mlp, true, options, device);
  add_training(rows, "lenet sgd", {64, 28, 28, 1}, lenet, false, options, device);
  if (has_loops) add_training(rows, "lstm sgd", {32, 32, 256}, lstm, false, options, device);
}

}  // namespace dflow::bench
