#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/state/update.hpp>
#include <dflow/train/optimizers.hpp>

#include <optional>
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

}  // namespace detail

std::unique_ptr<Optimizer::Updates> GradientDescent::start(GraphStore& graph) const {
  class Descent final : public Updates {
   public:
    Descent(GraphStore& graph, Hyperparameter learning_rate) : learning_rate_(graph, learning_rate) {}
    Operation apply_dense(const AnyVariable& variable, const AnyOutput& gradient) override {
      return build<ApplyGradientDescent>({variable.handle(), learning_rate_.of(variable.dtype()), gradient});
    }
    Operation apply_sparse(const AnyVariable& variable, const IndexedSlices& gradient) override {
      return build<SparseApplyGradientDescent>(
          {variable.handle(), learning_rate_.of(variable.dtype()), gradient.values, gradient.indices});
    }

   private:
    detail::SharedScalar learning_rate_;
  };
  return std::make_unique<Descent>(graph, learning_rate_);
}

std::unique_ptr<Optimizer::Updates> Momentum::start(GraphStore& graph) const {
  class Accumulated final : public Updates {
   public:
    Accumulated(GraphStore& graph, const Hyperparameter& learning_rate, const Hyperparameter& momentum, bool nesterov)
        : learning_rate_(graph, learning_rate), momentum_(graph, momentum), nesterov_(nesterov) {}
    Operation apply_dense(const AnyVariable& variable, const AnyOutput& gradient) override {
      const DType dtype = variable.dtype();
      const AnyVariable accum = make_slot(variable, "Momentum");
      return build<ApplyMomentum>(
          {variable.handle(), accum.handle(), learning_rate_.of(dtype), gradient, momentum_.of(dtype)},
          {.use_nesterov = nesterov_});
    }
    Operation apply_sparse(const AnyVariable& variable, const IndexedSlices& gradient) override {
      const DType dtype = variable.dtype();
      const AnyVariable accum = make_slot(variable, "Momentum");
      return build<SparseApplyMomentum>({variable.handle(), accum.handle(), learning_rate_.of(dtype), gradient.values,
                                         gradient.indices, momentum_.of(dtype)},
                                        {.use_nesterov = nesterov_});
    }

   private:
    detail::SharedScalar learning_rate_, momentum_;
    bool nesterov_;
  };
  return std::make_unique<Accumulated>(graph, learning_rate_, momentum_, options_.use_nesterov || options_.nesterov);
}

std::unique_ptr<Optimizer::Updates> Adam::start(GraphStore& graph) const {
  class Moments final : public Updates {
   public:
    Moments(GraphStore& graph, const Hyperparameter& learning_rate, double beta1, double beta2, double epsilon)
        : graph_(graph),
          beta1_power_(graph, "beta1_power", beta1),
          beta2_power_(graph, "beta2_power", beta2),
          learning_rate_(graph, learning_rate),
          beta1_(graph, beta1),
          beta2_(graph, beta2),
          epsilon_(graph, epsilon) {}

    Operation apply_dense(const AnyVariable& variable, const AnyOutput& gradient) override {
      std::vector<AnyOutput> inputs = inputs_for(variable);
      inputs.push_back(gradient);
      return build<ApplyAdam>(std::span<const AnyOutput>(inputs));
    }
    Operation apply_sparse(const AnyVariable& variable, const IndexedSlices& gradient) override {
      std::vector<AnyOutput> inputs = inputs_for(variable);
      inputs.push_back(gradient.values);
      inputs.push_back(gradient.indices);
      return build<SparseApplyAdam>(std::span<const AnyOutput>(inputs));
    }
    std::vector<Operation> finish(std::span<const Operation> updates) override {
      const ScopeGuard after = enter_control_dependencies(graph_, updates);
      std::vector<Operation> raised;
      beta1_power_.raise(beta1_, raised);
      beta2_power_.raise(beta2_, raised);
      return raised;
    }

   private:
    std::vector<AnyOutput> inputs_for(const AnyVariable& variable) {
      const DType dtype = variable.dtype();
      const AnyVariable m = make_slot(variable, "Adam"), v = make_slot(variable, "Adam");
      return {
          variable.handle(),        m.handle(),       v.handle(),       beta1_power_.of(dtype), beta2_power_.of(dtype),
          learning_rate_.of(dtype), beta1_.of(dtype), beta2_.of(dtype), epsilon_.of(dtype)};
    }

    GraphStore& graph_;
    detail::BetaPower beta1_power_, beta2_power_;
    detail::SharedScalar learning_rate_, beta1_, beta2_, epsilon_;
  };
  return std::make_unique<Moments>(graph, learning_rate_, beta1_, beta2_, epsilon_);
}

}  // namespace dflow::train
