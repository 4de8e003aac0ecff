#pragma once

#include <dflow/base/shared_part.hpp>
#include <dflow/train/optimizers.hpp>

#include <functional>
#include <memory>

namespace dflow::train {

struct WeightDecayOptions {
  /// The variables that decay; all if empty. Biases and norms are often left out:
  /// `[](const AnyVariable& v) { return v.shape().rank() > 1; }`. For a 16-bit variable, `v` is its float copy.
  std::function<bool(const AnyVariable&)> applies_to = {};
};

/// var -= learning_rate * weight_decay * var before each update of another optimizer. The gradients of that optimizer
/// do not include the decay (Loshchilov and Hutter 2017, arXiv:1711.05101, and as in Keras). With a sparse gradient
/// the whole variable decays.
///
/// Errors: InvalidArgument for no optimizer.
class DecoupledWeightDecay : public Optimizer {
 public:
  DecoupledWeightDecay(std::shared_ptr<const Optimizer> optimizer, Hyperparameter learning_rate,
                       Hyperparameter weight_decay, WeightDecayOptions options = {})
      : optimizer_(std::move(optimizer)),
        learning_rate_(learning_rate),
        weight_decay_(weight_decay),
        options_(std::move(options)) {
    if (optimizer_ == nullptr) throw_error(Status::invalid_argument("DecoupledWeightDecay: of no optimizer"));
  }

 private:
  std::string_view name() const override { return "DecoupledWeightDecay"; }
  std::unique_ptr<Updates> start(GraphStore& graph) const final;

  SharedPart<const Optimizer> optimizer_;
  Hyperparameter learning_rate_, weight_decay_;
  WeightDecayOptions options_;
};

/// Adam with decoupled weight decay.
class AdamW final : public DecoupledWeightDecay {
 public:
  explicit AdamW(Hyperparameter learning_rate = 0.001, Hyperparameter weight_decay = 0.004, double beta1 = 0.9,
                 double beta2 = 0.999, double epsilon = 1e-8, WeightDecayOptions options = {});

 private:
  std::string_view name() const override { return "AdamW"; }
};

/// Momentum with decoupled weight decay; with a momentum of 0, gradient descent.
class SGDW final : public DecoupledWeightDecay {
 public:
  explicit SGDW(Hyperparameter learning_rate, Hyperparameter weight_decay, Hyperparameter momentum = 0.9,
                MomentumOptions momentum_options = {}, WeightDecayOptions options = {});

 private:
  std::string_view name() const override { return "SGDW"; }
};

}  // namespace dflow::train
