#pragma once

#include <dflow/base/shared_part.hpp>
#include <dflow/train/optimizer.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::train {

struct DynamicLossScaleOptions {
  double initial = 32768;
  double growth_factor = 2;     ///< after `growth_interval` good steps in a row, if the scale stays finite
  double backoff_factor = 0.5;  ///< after a step that was skipped
  std::int64_t growth_interval = 2000;
  double minimum = 1;
};

/// The factor for a loss before differentiation: fixed, or dynamic, as large as the gradients bear.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument for numbers that are not positive and finite in float, for a growth factor or interval
/// below 1, for a backoff factor above 1, and for an initial scale below the minimum.
class LossScale {
 public:
  static LossScale fixed(double value, std::source_location where = std::source_location::current());
  static LossScale dynamic(const DynamicLossScaleOptions& options = {},
                           std::source_location where = std::source_location::current());

  bool is_dynamic() const noexcept { return is_dynamic_; }
  /// A fixed scale always has the value `initial`.
  const DynamicLossScaleOptions& options() const noexcept { return options_; }

 private:
  LossScale(const DynamicLossScaleOptions& options, bool is_dynamic) : options_(options), is_dynamic_(is_dynamic) {}

  DynamicLossScaleOptions options_;
  bool is_dynamic_;
};

/// Wraps another optimizer for models that compute in 16 bits. It multiplies the loss by a scale before
/// differentiation, so that float16 gradients do not vanish. It then divides the gradients by the scale in float
/// (Micikevicius et al. 2017, arXiv:1710.03740). A step with a gradient that is infinite or not a number is skipped.
///
/// ```cpp
/// df::train::LossScaleOptimizer optimizer(df::train::Adam(1e-3));
/// auto train = optimizer.minimize(loss);
/// ```
/// A skipped step changes no variable, slot, power of Adam's or global step, and so no schedule. It halves a dynamic
/// scale. After 2000 steps in a row without a skip, a dynamic scale doubles, as in TensorFlow's LossScaleOptimizer and
/// PyTorch's GradScaler. A fixed scale skips steps as well. Operations beside the updates run also in a skipped step:
/// `update_operations(loss)`, and averages that a caller moves after the step, by the values that the variables have
/// kept.
/// `compute_gradients` gives the divided gradients, to be clipped or added up as any others. If one gradient has an
/// element that is infinite or not a number, every element of all gradients is NaN, so no later operation hides the
/// overflow. `apply_gradients` checks the gradients that it is given. If they are means of accumulated gradients, one
/// bad batch skips the update. If `SyncReplicas` gathered them, the bad gradients of one replica skip the step of all
/// replicas. `SyncReplicas` counts the skipped steps in `global_step` too, since replicas wait for it.
/// The state of a dynamic scale is two variables of the graph of the first call: "current_loss_scale", float [], and
/// "good_steps", int64 []. Savers save both. Slots have the names that they have without a LossScaleOptimizer.
///
/// Thread safety: const, with a state that calls share: building, see Graph.
/// Errors: InvalidArgument for a LossScaleOptimizer within another LossScaleOptimizer or a DecoupledWeightDecay: write
/// `LossScaleOptimizer(AdamW(1e-3))`. InvalidArgument also for a loss of another graph than the graph of the first
/// call, while the latter exists.
class LossScaleOptimizer final : public Optimizer {
 public:
  template <std::derived_from<Optimizer> O>
  explicit LossScaleOptimizer(O optimizer, const LossScale& scale = LossScale::dynamic(),
                              std::source_location where = std::source_location::current())
      : LossScaleOptimizer(std::make_shared<const O>(std::move(optimizer)), scale, where) {}
  explicit LossScaleOptimizer(std::shared_ptr<const Optimizer> optimizer, const LossScale& scale = LossScale::dynamic(),
                              std::source_location where = std::source_location::current());

  /// The scale, to show or to record. Errors: FailedPrecondition before the first call that builds.
  Output<float> scale() const;
  /// The number of steps in a row without a skip since the scale has changed. Errors: FailedPrecondition before the
  /// first call that builds, and for a fixed scale.
  Output<std::int64_t> good_steps() const;

 private:
  struct State;

  std::string_view name() const override { return "LossScaleOptimizer"; }
  std::unique_ptr<Updates> start(GraphStore& graph) const override;
  std::vector<GradientAndVariable> differentiate(const AnyOutput& loss, std::vector<AnyVariable> variables,
                                                 const ComputeGradientsOptions& options,
                                                 std::source_location where) const override;
  Operation update(std::span<const GradientAndVariable> gradients,
                   const std::optional<Variable<std::int64_t>>& global_step, const At& at) const override;
  Operation update_replica(std::span<const GradientAndVariable> gradients,
                           const std::optional<Variable<std::int64_t>>& global_step, bool changes_shared,
                           const At& at) const override;

  State& state_in(GraphStore& graph, std::source_location where) const;
  const State& built() const;

  SharedPart<const Optimizer> optimizer_;
  LossScale scale_;
  SharedPart<State> state_;
};

}  // namespace dflow::train
