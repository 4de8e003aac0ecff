#pragma once

#include <dflow/train/optimizer.hpp>

namespace dflow::train {

/// var -= learning_rate * gradient.
class GradientDescent final : public Optimizer {
 public:
  explicit GradientDescent(Hyperparameter learning_rate) : learning_rate_(learning_rate) {}

 private:
  std::string_view name() const override { return "GradientDescent"; }
  std::unique_ptr<Updates> start(GraphStore& graph) const override;

  Hyperparameter learning_rate_;
};

struct MomentumOptions {
  bool use_nesterov = false;  ///< look ahead by one step (Sutskever et al. 2013)
  bool nesterov = false;      ///< the old name of `use_nesterov`, for one minor version
};

/// accum = momentum * accum + gradient; var -= learning_rate * accum.
class Momentum final : public Optimizer {
 public:
  explicit Momentum(Hyperparameter learning_rate, Hyperparameter momentum = 0.9, MomentumOptions options = {})
      : learning_rate_(learning_rate), momentum_(momentum), options_(options) {}

 private:
  std::string_view name() const override { return "Momentum"; }
  std::unique_ptr<Updates> start(GraphStore& graph) const override;

  Hyperparameter learning_rate_;
  Hyperparameter momentum_;
  MomentumOptions options_;
};

/// Steps scaled by running moments of the gradient (Kingma and Ba 2014, arXiv:1412.6980). A sparse gradient moves only
/// the rows that it names, with their moments.
class Adam final : public Optimizer {
 public:
  explicit Adam(Hyperparameter learning_rate = 0.001, double beta1 = 0.9, double beta2 = 0.999, double epsilon = 1e-8)
      : learning_rate_(learning_rate), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}

 private:
  std::string_view name() const override { return "Adam"; }
  std::unique_ptr<Updates> start(GraphStore& graph) const override;

  Hyperparameter learning_rate_;
  double beta1_;
  double beta2_;
  double epsilon_;
};

}  // namespace dflow::train
