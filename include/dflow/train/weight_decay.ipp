#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/train/weight_decay.hpp>

#include <utility>

namespace dflow::train {

std::unique_ptr<Optimizer::Updates> DecoupledWeightDecay::start(GraphStore& graph) const {
  class Decaying final : public Updates {
   public:
    Decaying(GraphStore& graph, std::unique_ptr<Updates> updates, const DecoupledWeightDecay& decay)
        : graph_(graph),
          updates_(std::move(updates)),
          learning_rate_(graph, decay.learning_rate_),
          weight_decay_(graph, decay.weight_decay_),
          applies_to_(decay.options_.applies_to) {}

    Operation apply_dense(const AnyVariable& variable, const AnyOutput& gradient) override {
      const Operation decayed = decay(variable, gradient.operation());
      const ScopeGuard after = enter_control_dependencies(graph_, std::span(&decayed, decayed.is_valid() ? 1 : 0));
      return updates_->apply_dense(variable, gradient);
    }
    Operation apply_sparse(const AnyVariable& variable, const IndexedSlices& gradient) override {
      const Operation decayed = decay(variable, gradient.values.operation());
      const ScopeGuard after = enter_control_dependencies(graph_, std::span(&decayed, decayed.is_valid() ? 1 : 0));
      return updates_->apply_sparse(variable, gradient);
    }
    std::vector<Operation> finish(std::span<const Operation> updates) override { return updates_->finish(updates); }

   private:
    /// Runs after the gradient has been computed from the old value of the variable.
    Operation decay(const AnyVariable& variable, const Operation& gradient) {
      if (applies_to_ && !applies_to_(variable)) return {};
      const AnyOutput rate = build<Mul>({learning_rate_.of(variable.dtype()), weight_decay_.of(variable.dtype())});
      const ScopeGuard after = enter_control_dependencies(graph_, std::span(&gradient, 1));
      return variable.assign_sub(build<Mul>({variable.read(), rate}));
    }

    GraphStore& graph_;
    std::unique_ptr<Updates> updates_;
    detail::SharedScalar learning_rate_, weight_decay_;
    std::function<bool(const AnyVariable&)> applies_to_;
  };
  return std::make_unique<Decaying>(graph, optimizer_->start(graph), *this);
}

AdamW::AdamW(Hyperparameter learning_rate, Hyperparameter weight_decay, double beta1, double beta2, double epsilon,
             WeightDecayOptions options)
    : DecoupledWeightDecay(std::make_shared<Adam>(learning_rate, beta1, beta2, epsilon), learning_rate, weight_decay,
                           std::move(options)) {}

SGDW::SGDW(Hyperparameter learning_rate, Hyperparameter weight_decay, Hyperparameter momentum,
           MomentumOptions momentum_options, WeightDecayOptions options)
    : DecoupledWeightDecay(std::make_shared<Momentum>(learning_rate, momentum, momentum_options), learning_rate,
                           weight_decay, std::move(options)) {}

}  // namespace dflow::train
