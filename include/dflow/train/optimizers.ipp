#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/state/update.hpp>
#include <dflow/train/optimizers.hpp>

#include <cmath>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::train {

namespace detail {

/// One edge per element type of a hyperparameter, shared by the updates of all variables of that type.
class SharedScalar {
 public:
  SharedScalar(GraphStore& graph, Hyperparameter value) : graph_(graph), scope_(graph.scope()), value_(value) {}

  AnyOutput of(DType dtype) {
    for (const AnyOutput& edge : edges_) {
      if (edge.dtype() == dtype) return edge;
    }
    // The edge belongs to all variables, not to the first that asks.
    const ScopeGuard outside = graph_.enter(scope_);
    return edges_.emplace_back(value_.edge(graph_, dtype));
  }

 private:
  GraphStore& graph_;
  GraphStore::Scope scope_;
  Hyperparameter value_;
  std::vector<AnyOutput> edges_;
};

/// beta to the power of the step's number; the first step has beta. Updates of double variables share a double
/// variable, and updates of all other variables share a float one.
class BetaPower {
 public:
  BetaPower(GraphStore& graph, std::string_view name, double beta)
      : graph_(graph), scope_(graph.scope()), name_(name), beta_(beta) {}

  AnyOutput of(DType dtype) {
    std::optional<Power>& power = dtype == DType::float64 ? wide_ : narrow_;
    if (!power) power.emplace(make(dtype == DType::float64 ? DType::float64 : DType::float32));
    return power->value.of(dtype);
  }

  /// Appends the operations that raise it to the power of the next step.
  void raise(SharedScalar& beta, std::vector<Operation>& operations) const {
    for (const std::optional<Power>* const power : {&narrow_, &wide_}) {
      if (!power->has_value()) continue;
      const AnyVariable& variable = (*power)->variable;
      operations.push_back(variable.assign(build<Mul>({variable.read_edge(), beta.of(variable.dtype())})));
    }
  }

 private:
  struct Power {
    AnyVariable variable;
    SharedScalar value;
  };

  /// The power belongs to all variables, not to the first that asks.
  Power make(DType dtype) const {
    GraphStore::Scope scope = scope_;
    scope.control_inputs.clear();  // its first value waits for nothing of a step
    scope.function = NodeId();     // the variable is no part of a body in which the step is made
    scope.foreign = nullptr;
    const ScopeGuard outside = graph_.enter(std::move(scope));
    const AnyOutput initial = Hyperparameter(beta_).edge(graph_, dtype);
    const std::string unique = graph_.unique_name(name_).substr(scope_.name_prefix.size());
    const AnyVariable variable = AnyVariable::make(graph_, initial, {.name = unique, .trainable = false});
    const AnyOutput read = variable.read_edge();
    const Hyperparameter value =
        dtype == DType::float64 ? Hyperparameter(Output<double>(read)) : Hyperparameter(Output<float>(read));
    return {variable, SharedScalar(graph_, value)};
  }

  GraphStore& graph_;
  GraphStore::Scope scope_;
  std::string_view name_;
  double beta_;
  std::optional<Power> narrow_, wide_;
};

/// Updates by a pair of ops whose inputs are as `UpdateInputs` says. Base: `Optimizer::Updates`.
template <class Base, class Dense, class Sparse>
class UpdatesBy : public Base {
 public:
  struct Slot {
    std::string_view name;
    double initial = 0;
  };

  UpdatesBy(GraphStore& graph, std::vector<Slot> slots, std::initializer_list<Hyperparameter> factors,
            bool use_nesterov = false)
      : slots_(std::move(slots)), use_nesterov_(use_nesterov) {
    for (const Hyperparameter& factor : factors) factors_.emplace_back(graph, factor);
  }

  Operation apply_dense(const AnyVariable& variable, const AnyOutput& gradient) override {
    const std::vector<AnyOutput> inputs = inputs_of(Dense::update, variable, gradient, {});
    return build<Dense>(std::span<const AnyOutput>(inputs), attrs_of<Dense>());
  }
  Operation apply_sparse(const AnyVariable& variable, const IndexedSlices& gradient) override {
    const std::vector<AnyOutput> inputs = inputs_of(Sparse::update, variable, gradient.values, gradient.indices);
    return build<Sparse>(std::span<const AnyOutput>(inputs), attrs_of<Sparse>());
  }

 protected:
  /// Factors before the others.
  virtual std::vector<AnyOutput> first_factors(DType /*dtype*/) { return {}; }

 private:
  std::vector<AnyOutput> inputs_of(const dflow::detail::UpdateInputs& update, const AnyVariable& variable,
                                   const AnyOutput& gradient, const AnyOutput& indices) {
    std::vector<AnyOutput> inputs{variable.handle()};
    for (const Slot& slot : slots_) {
      inputs.push_back(make_slot(variable, slot.name, DType::invalid, slot.initial).handle());
    }
    const std::vector<AnyOutput> first = first_factors(variable.dtype());
    inputs.insert(inputs.end(), first.begin(), first.end());
    for (SharedScalar& factor : factors_) inputs.push_back(factor.of(variable.dtype()));
    const auto at = inputs.begin() + update.gradient;
    if (update.is_sparse) {
      inputs.insert(at, {gradient, indices});
    } else {
      inputs.insert(at, gradient);
    }
    return inputs;
  }

  template <class O>
  typename O::Attrs attrs_of() const {
    typename O::Attrs attrs;
    if constexpr (requires { attrs.use_nesterov; }) attrs.use_nesterov = use_nesterov_;
    return attrs;
  }

  std::vector<Slot> slots_;
  std::vector<SharedScalar> factors_;
  bool use_nesterov_;
};

}  // namespace detail

std::unique_ptr<Optimizer::Updates> GradientDescent::start(GraphStore& graph) const {
  using By = detail::UpdatesBy<Updates, ApplyGradientDescent, SparseApplyGradientDescent>;
  return std::make_unique<By>(graph, std::vector<By::Slot>(), std::initializer_list<Hyperparameter>{learning_rate_});
}

std::unique_ptr<Optimizer::Updates> Momentum::start(GraphStore& graph) const {
  using By = detail::UpdatesBy<Updates, ApplyMomentum, SparseApplyMomentum>;
  return std::make_unique<By>(graph, std::vector<By::Slot>{{"Momentum"}},
                              std::initializer_list<Hyperparameter>{learning_rate_, momentum_},
                              options_.use_nesterov || options_.nesterov);
}

std::unique_ptr<Optimizer::Updates> Adam::start(GraphStore& graph) const {
  class Moments final : public detail::UpdatesBy<Updates, ApplyAdam, SparseApplyAdam> {
   public:
    Moments(GraphStore& graph, const Hyperparameter& learning_rate, double beta1, double beta2, double epsilon)
        : UpdatesBy(graph, {{"Adam"}, {"Adam"}}, {learning_rate, beta1, beta2, epsilon}),
          graph_(graph),
          beta1_power_(graph, "beta1_power", beta1),
          beta2_power_(graph, "beta2_power", beta2),
          beta1_(graph, beta1),
          beta2_(graph, beta2) {}

    std::vector<Operation> finish(std::span<const Operation> updates) override {
      const ScopeGuard after = enter_control_dependencies(graph_, updates);
      std::vector<Operation> raised;
      beta1_power_.raise(beta1_, raised);
      beta2_power_.raise(beta2_, raised);
      return raised;
    }

   private:
    std::vector<AnyOutput> first_factors(DType dtype) override {
      return {beta1_power_.of(dtype), beta2_power_.of(dtype)};
    }

    GraphStore& graph_;
    detail::BetaPower beta1_power_, beta2_power_;
    detail::SharedScalar beta1_, beta2_;
  };
  return std::make_unique<Moments>(graph, learning_rate_, beta1_, beta2_, epsilon_);
}

namespace detail {
inline void require_option(bool holds, std::string_view what, double value, std::source_location where) {
  if (!holds || !std::isfinite(value)) {
    throw_error(Status::invalid_argument(str_cat(what, ", and is ", value)).with_location(where));
  }
}
}  // namespace detail

Adagrad::Adagrad(Hyperparameter learning_rate, double initial_accumulator_value, std::source_location where)
    : learning_rate_(learning_rate), initial_accumulator_value_(initial_accumulator_value) {
  detail::require_option(initial_accumulator_value > 0, "Adagrad: initial_accumulator_value must be positive",
                         initial_accumulator_value, where);
}

std::unique_ptr<Optimizer::Updates> Adagrad::start(GraphStore& graph) const {
  using By = detail::UpdatesBy<Updates, ApplyAdagrad, SparseApplyAdagrad>;
  return std::make_unique<By>(graph, std::vector<By::Slot>{{"Adagrad", initial_accumulator_value_}},
                              std::initializer_list<Hyperparameter>{learning_rate_});
}

std::unique_ptr<Optimizer::Updates> Adadelta::start(GraphStore& graph) const {
  using By = detail::UpdatesBy<Updates, ApplyAdadelta, SparseApplyAdadelta>;
  return std::make_unique<By>(graph, std::vector<By::Slot>{{"Adadelta"}, {"Adadelta"}},
                              std::initializer_list<Hyperparameter>{learning_rate_, rho_, epsilon_});
}

Ftrl::Ftrl(Hyperparameter learning_rate, FtrlOptions options, std::source_location where)
    : learning_rate_(learning_rate), options_(options) {
  detail::require_option(options.learning_rate_power <= 0, "Ftrl: learning_rate_power must not be positive",
                         options.learning_rate_power, where);
  detail::require_option(options.initial_accumulator_value >= 0, "Ftrl: initial_accumulator_value must not be negative",
                         options.initial_accumulator_value, where);
  detail::require_option(options.l1 >= 0, "Ftrl: l1 must not be negative", options.l1, where);
  detail::require_option(options.l2 >= 0, "Ftrl: l2 must not be negative", options.l2, where);
}

std::unique_ptr<Optimizer::Updates> Ftrl::start(GraphStore& graph) const {
  using By = detail::UpdatesBy<Updates, ApplyFtrl, SparseApplyFtrl>;
  return std::make_unique<By>(
      graph, std::vector<By::Slot>{{"Ftrl", options_.initial_accumulator_value}, {"Ftrl"}},
      std::initializer_list<Hyperparameter>{learning_rate_, options_.l1, options_.l2, options_.learning_rate_power});
}

std::unique_ptr<Optimizer::Updates> RmsProp::start(GraphStore& graph) const {
  const std::initializer_list<Hyperparameter> factors{learning_rate_, options_.decay, options_.momentum,
                                                      options_.epsilon};
  if (options_.centered) {
    using By = detail::UpdatesBy<Updates, ApplyCenteredRMSProp, SparseApplyCenteredRMSProp>;
    return std::make_unique<By>(graph, std::vector<By::Slot>{{"RMSProp"}, {"RMSProp", 1.0}, {"RMSProp"}}, factors);
  }
  using By = detail::UpdatesBy<Updates, ApplyRMSProp, SparseApplyRMSProp>;
  return std::make_unique<By>(graph, std::vector<By::Slot>{{"RMSProp", 1.0}, {"RMSProp"}}, factors);
}

}  // namespace dflow::train
