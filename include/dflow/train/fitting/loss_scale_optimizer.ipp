#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/control/function_builders.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/train/fitting/loss_scale_optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace dflow::train {

namespace detail {

/// Whether all elements of all gradients are finite numbers: bool [].
AnyOutput all_finite(std::span<const GradientAndVariable> gradients, const At& at) {
  AnyOutput all;
  for (const GradientAndVariable& each : gradients) {
    if (!each.gradient.exists()) continue;
    const AnyOutput finite = build<IsFinite>({values_of(each.gradient)});
    const auto operands = dflow::detail::reduce_operands(finite, {}, false, All::name, at);
    const AnyOutput of_one = build<All>({operands.x, operands.axes});
    all = all.is_valid() ? AnyOutput(build<LogicalAnd>({all, of_one})) : of_one;
  }
  return all;
}

}  // namespace detail

// ---- LossScale ----

LossScale LossScale::fixed(double value, std::source_location where) {
  return LossScale(dynamic({.initial = value, .minimum = value}, where).options_, false);
}

LossScale LossScale::dynamic(const DynamicLossScaleOptions& options, std::source_location where) {
  const auto is_scale = [](double value) {
    const auto narrow = static_cast<float>(std::min<double>(value, std::numeric_limits<float>::max()));
    return std::isfinite(value) && value <= std::numeric_limits<float>::max() && narrow > 0;
  };
  const auto& [initial, growth, backoff, interval, minimum] = options;
  if (is_scale(initial) && is_scale(minimum) && initial >= minimum && growth >= 1 && is_scale(growth) &&
      is_scale(backoff) && backoff <= 1 && interval >= 1) {
    return LossScale(options, true);
  }
  throw_error(
      Status::invalid_argument(str_cat("LossScale: initial ", initial, ", minimum ", minimum, ", growth by ", growth,
                                       " after ", interval, " steps, backoff by ", backoff,
                                       ": wanted 0 < minimum <= initial, growth >= 1, an interval >= 1, 0 < backoff "
                                       "<= 1, all finite"))
          .with_location(where));
}

// ---- LossScaleOptimizer ----

/// The nodes that the first call makes, in its graph.
struct LossScaleOptimizer::State : std::enable_shared_from_this<State> {
  /// Checked gradients, and whether they were finite.
  struct Known {
    std::vector<Endpoint> gradients;
    AnyOutput all_finite;
  };

  std::weak_ptr<const NodeList> graph;  ///< an address would not identify a graph that is gone
  AnyOutput scale;                      ///< float []
  AnyVariable current, good_steps;      ///< of a dynamic one
  std::vector<Known> known;

  void forget() {
    graph.reset();
    scale = {};
    current = good_steps = {};
    known.clear();
  }

  AnyOutput find(std::span<const GradientAndVariable> of) const {
    for (const Known& each : known) {
      const bool has_all = std::all_of(of.begin(), of.end(), [&](const GradientAndVariable& one) {
        return !one.gradient.exists() || std::find(each.gradients.begin(), each.gradients.end(),
                                                   detail::values_of(one.gradient).endpoint()) != each.gradients.end();
      });
      if (has_all) return each.all_finite;
    }
    return {};
  }
};

LossScaleOptimizer::LossScaleOptimizer(std::shared_ptr<const Optimizer> optimizer, const LossScale& scale,
                                       std::source_location where)
    : optimizer_(std::move(optimizer)), scale_(scale), state_(std::make_shared<State>()) {
  if (optimizer_ == nullptr)
    throw_error(Status::invalid_argument("LossScaleOptimizer: of no optimizer").with_location(where));
  if (dynamic_cast<const LossScaleOptimizer*>(optimizer_.get()) == nullptr) return;
  throw_error(Status::invalid_argument("LossScaleOptimizer: the optimizer is one already: a loss is scaled once")
                  .with_location(where));
}

std::unique_ptr<Optimizer::Updates> LossScaleOptimizer::start(GraphStore&) const {
  throw_error(Status::invalid_argument(
      "LossScaleOptimizer: it goes around other optimizers, as in LossScaleOptimizer(AdamW(1e-3)), not into them"));
}

const LossScaleOptimizer::State& LossScaleOptimizer::built() const {
  if (state_->scale.is_valid()) return *state_;
  throw_error(Status::failed_precondition("LossScaleOptimizer: call minimize or compute_gradients first"));
}

Output<float> LossScaleOptimizer::scale() const { return Output<float>::unchecked(built().scale); }

Output<std::int64_t> LossScaleOptimizer::good_steps() const {
  if (!scale_.is_dynamic())
    throw_error(Status::failed_precondition("LossScaleOptimizer: a fixed scale counts no steps"));
  return Output<std::int64_t>::unchecked(built().good_steps.read_edge());
}

LossScaleOptimizer::State& LossScaleOptimizer::state_in(GraphStore& graph, std::source_location where) const {
  State& state = *state_;
  if (const auto known = state.graph.lock(); known != nullptr) {
    if (known == graph.keep_nodes()) return state;
    throw_error(Status::invalid_argument("LossScaleOptimizer: its scale is of another graph").with_location(where));
  }
  state.forget();
  GraphStore::Scope scope = graph.scope();
  scope.control_inputs.clear();
  scope.function = NodeId();
  scope.foreign = nullptr;
  const ScopeGuard outside = graph.enter(scope);
  const auto value = static_cast<float>(scale_.options().initial);
  const auto constant = [&](AnyTensor tensor) { return dflow::detail::any_constant(graph, std::move(tensor), {}); };
  const auto make = [&](const AnyOutput& initial, std::string_view wanted) {
    const std::string name = graph.unique_name(wanted).substr(scope.name_prefix.size());
    return AnyVariable::make(graph, initial, {.name = name, .trainable = false});
  };
  const AnyOutput initial = constant(Tensor<float>::full({}, value));
  if (scale_.is_dynamic()) {
    state.current = make(initial, "current_loss_scale");
    state.good_steps = make(constant(Tensor<std::int64_t>::zeros({})), "good_steps");
  }
  state.scale = scale_.is_dynamic() ? state.current.read_edge() : initial;
  state.graph = graph.keep_nodes();
  graph.on_drop([made = state.weak_from_this()] {
    if (const std::shared_ptr<State> dropped = made.lock()) dropped->forget();
  });
  return state;
}

std::vector<GradientAndVariable> LossScaleOptimizer::differentiate(const AnyOutput& loss,
                                                                   std::vector<AnyVariable> variables,
                                                                   const ComputeGradientsOptions& options,
                                                                   std::source_location where) const {
  GraphStore& graph = *loss.graph();
  const Composite place(graph, where);
  State& state = state_in(graph, where);
  const AnyOutput wide = dflow::detail::widened(loss);
  const AnyOutput scaled = Expr(wide) * Expr(dflow::detail::cast_to(state.scale, wide.dtype()));
  std::vector<GradientAndVariable> gradients =
      optimizer_->compute_gradients(scaled, std::move(variables), options, where);
  State::Known known;
  known.all_finite = detail::all_finite(gradients, {.where = where});
  std::vector<Expr> factors;  // by element type: not a number for gradients that are not finite
  for (auto& [gradient, variable] : gradients) {
    if (!gradient.exists()) continue;
    AnyOutput& values = detail::values_of(gradient);
    values = dflow::detail::widened(values);
    auto factor =
        std::find_if(factors.begin(), factors.end(), [&](const Expr& each) { return each.dtype() == values.dtype(); });
    if (factor == factors.end()) {
      const Expr inverse = 1.0 / Expr(dflow::detail::cast_to(state.scale, values.dtype()));
      const AnyOutput none = scalar_like(inverse, std::numeric_limits<double>::quiet_NaN());
      factor = factors.insert(factors.end(), AnyOutput(build<Select>({known.all_finite, inverse, none})));
    }
    values = Expr(values) * *factor;
    known.gradients.push_back(values.endpoint());
  }
  if (!known.gradients.empty()) state.known.push_back(std::move(known));
  return gradients;
}

Operation LossScaleOptimizer::update(std::span<const GradientAndVariable> gradients,
                                     const std::optional<Variable<std::int64_t>>& global_step, const At& at) const {
  return update_replica(gradients, global_step, true, at);
}

Operation LossScaleOptimizer::update_replica(std::span<const GradientAndVariable> gradients,
                                             const std::optional<Variable<std::int64_t>>& global_step,
                                             bool changes_shared, const At& at) const {
  GraphStore& graph = graph_of(gradients, at.where);
  const Composite place(graph, at.where);
  const State& state = state_in(graph, at.where);
  const GraphStore::Scope around = graph.scope();
  std::optional<ScopeGuard> names(enter_name_scope(graph, name()));
  AnyOutput is_good = state.find(gradients);
  if (!is_good.is_valid()) is_good = detail::all_finite(gradients, {.where = at.where});

  const DynamicLossScaleOptions& options = scale_.options();
  const bool changes_scale = scale_.is_dynamic() && changes_shared;
  const auto count = [&](std::int64_t value) {
    return dflow::detail::any_constant(graph, Tensor<std::int64_t>::full({}, value), {});
  };
  const auto step = [&] {
    std::vector<Operation> done;
    {
      // Slots and powers are named as they are without a scale.
      GraphStore::Scope own = graph.scope();
      own.name_prefix = around.name_prefix;
      const ScopeGuard unscaled = graph.enter(std::move(own));
      done.push_back(optimizer_->apply_gradients(detail::in_this_body(gradients), global_step, {.where = at.where}));
    }
    if (changes_scale) {
      const Expr now = state.current.read(), larger = now * options.growth_factor;
      const AnyOutput grown = build<Select>({AnyOutput(build<IsFinite>({larger})), larger, now});
      const AnyOutput good = build<Add>({state.good_steps.read(), count(1)});
      const AnyOutput is_enough = build<GreaterEqual>({good, count(options.growth_interval)});
      done.push_back(state.current.assign(AnyOutput(build<Select>({is_enough, grown, now}))));
      done.push_back(state.good_steps.assign(AnyOutput(build<Select>({is_enough, count(0), good}))));
    }
    return dflow::detail::BodyResults{{}, done};
  };
  const auto skip = [&] {
    dflow::detail::BodyResults results;
    if (changes_scale) {
      const Expr smaller = Expr(state.current.read()) * options.backoff_factor;
      const AnyOutput least = scalar_like(smaller, options.minimum);
      results.targets.push_back(state.current.assign(AnyOutput(build<Maximum>({smaller, least}))));
      results.targets.push_back(state.good_steps.assign(count(0)));
    }
    return results;
  };
  const auto step_or_skip = [&](std::size_t branch) { return branch == 0 ? step() : skip(); };
  const Operation made =
      dflow::detail::any_branch(is_good, {"step", "skip"}, step_or_skip, "is_finite", {.where = at.where});
  if (!at.name.empty()) names.reset();
  return group({&made, 1}, at);
}

}  // namespace dflow::train
