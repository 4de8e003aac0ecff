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

/// Steps that shrink for a coordinate as its squared gradients add up (Duchi et al. 2011): accum += gradient^2;
/// var -= learning_rate * gradient / sqrt(accum).
///
/// Errors: InvalidArgument if `initial_accumulator_value` is not positive and finite.
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(Hyperparameter learning_rate, double initial_accumulator_value = 0.1,
                   std::source_location where = std::source_location::current());

 private:
  std::string_view name() const override { return "Adagrad"; }
  std::unique_ptr<Updates> start(GraphStore& graph) const override;

  Hyperparameter learning_rate_;
  double initial_accumulator_value_;
};

/// Steps by the ratio of running means of squared steps and of squared gradients (Zeiler 2012, arXiv:1212.5701), times
/// the learning rate. `ApplyAdadelta` has the formula.
class Adadelta final : public Optimizer {
 public:
  explicit Adadelta(Hyperparameter learning_rate = 0.001, double rho = 0.95, double epsilon = 1e-8)
      : learning_rate_(learning_rate), rho_(rho), epsilon_(epsilon) {}

 private:
  std::string_view name() const override { return "Adadelta"; }
  std::unique_ptr<Updates> start(GraphStore& graph) const override;

  Hyperparameter learning_rate_;
  double rho_;
  double epsilon_;
};

struct FtrlOptions {
  double learning_rate_power = -0.5;       ///< at most 0; 0 is a rate that stays
  double initial_accumulator_value = 0.1;  ///< of the squared gradients; not negative
  double l1 = 0;                           ///< strength of the penalty on |w|; not negative
  double l2 = 0;                           ///< strength of the penalty on w^2; not negative
};

/// Follow the regularised leader, which sets weights to 0 exactly (McMahan et al. 2013, "Ad Click Prediction",
/// algorithm 1). `ApplyFtrl` has the formula.
///
/// Errors: InvalidArgument for options beyond their limits.
class Ftrl final : public Optimizer {
 public:
  explicit Ftrl(Hyperparameter learning_rate, FtrlOptions options = {},
                std::source_location where = std::source_location::current());

 private:
  std::string_view name() const override { return "Ftrl"; }
  std::unique_ptr<Updates> start(GraphStore& graph) const override;

  Hyperparameter learning_rate_;
  FtrlOptions options_;
};

struct RmsPropOptions {
  double decay = 0.9;      ///< of the running means
  double momentum = 0;     ///< of the steps
  double epsilon = 1e-10;  ///< added to the mean square
  bool centered = false;   ///< divide by the standard deviation of the gradient (Graves 2013, arXiv:1308.0850)
};

/// Steps divided by the root of the mean square of the gradient (Tieleman and Hinton 2012, lecture 6.5). The mean
/// square starts at 1. `ApplyRMSProp` and `ApplyCenteredRMSProp` have the formulas.
class RmsProp final : public Optimizer {
 public:
  explicit RmsProp(Hyperparameter learning_rate, RmsPropOptions options = {})
      : learning_rate_(learning_rate), options_(options) {}

 private:
  std::string_view name() const override { return "RMSProp"; }
  std::unique_ptr<Updates> start(GraphStore& graph) const override;

  Hyperparameter learning_rate_;
  RmsPropOptions options_;
};

}  // namespace dflow::train
