#pragma once

#include <dflow/dflow.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace dflow::testing {

/// A small convolutional network with dense layers, trained by Adam, which runs while memory fails. Each function is
/// one phase of a program's life. After an error in a phase the phase is begun again, as a program would.
class SmallTraining {
 public:
  void build() {
    graph_.emplace(GraphOptions{.seed = 3});
    images_ = placeholder<float>(*graph_, {4, 6, 6, 2}, {.name = "images"});
    labels_ = placeholder<std::int32_t>(*graph_, {4}, {.name = "labels"});
    const Output<float> maps =
        conv2d(images_, 3, 3, {.activation = Activation::relu, .kernel_initializer = init::constant(0.1)});
    const Output<float> hidden = dense(flatten(max_pool(maps, 2)), 5,
                                       {.activation = Activation::tanh, .kernel_initializer = init::constant(0.2)});
    const Output<float> logits = dense(hidden, 3, {.kernel_initializer = init::constant(0.3)});
    loss_ = reduce_mean(sparse_softmax_cross_entropy(logits, labels_));
    train_ = train::Adam(0.01f).minimize(loss_);
    initialize_ = initialize_variables(*graph_);
  }

  void open(SessionOptions options) {
    options.reproducible = true;
    session_.emplace(*graph_, std::move(options));
  }

  void initialize() { session_->run(initialize_); }

  /// Two prepared steps; the loss of the second.
  float prepared() {
    auto step = session_->prepare(feeds(images_, labels_), fetches(loss_, train_));
    static_cast<void>(step(pixels(), classes()));
    return step(pixels(), classes()).scalar();
  }

  float run() { return session_->run({{images_, pixels()}, {labels_, classes()}}, loss_).scalar(); }

  /// Throws the error that the callback gets.
  float run_async() {
    auto outcome = std::make_shared<std::promise<float>>();
    std::future<float> future = outcome->get_future();
    session_->run_async({{images_, pixels()}, {labels_, classes()}}, loss_,
                        [outcome](Status status, const Tensor<float>& loss) {
                          if (status.ok()) {
                            outcome->set_value(loss.scalar());
                          } else {
                            outcome->set_exception(std::make_exception_ptr(Error(status)));
                          }
                        });
    return future.get();
  }

  /// The loss after a fresh start and three steps: the same to the bit wherever nothing went wrong.
  float all_steps() {
    initialize();
    prepared();
    run();
    return run_async();
  }

  void close() { session_.reset(); }

  bool is_built() const { return initialize_.is_valid(); }
  bool is_open() const { return session_.has_value(); }

  static Tensor<float> pixels() {
    Tensor<float> tensor({4, 6, 6, 2});
    for (std::size_t i = 0; i < tensor.span().size(); ++i) tensor.span()[i] = static_cast<float>(i % 7) * 0.25f - 0.5f;
    return tensor;
  }
  static Tensor<std::int32_t> classes() { return Tensor<std::int32_t>({4}, {0, 2, 1, 2}); }

 private:
  std::optional<Graph> graph_;
  std::optional<Session> session_;
  Output<float> images_, loss_;
  Output<std::int32_t> labels_;
  Operation train_, initialize_;
};

/// Gives other threads time until `condition()` holds; false if that takes too long. A step's memory goes after its
/// callback has returned, and no function waits for that.
template <class Condition>
bool comes_true(Condition&& condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace dflow::testing
