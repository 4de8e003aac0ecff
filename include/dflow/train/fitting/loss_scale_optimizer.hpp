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

/// What a loss is multiplied by before it is differentiated: always the same, or as large as gradients bear.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument for numbers that are not positive and finite in float, a growth factor or interval below 1,
/// a backoff factor above 1, and an initial scale below the minimum.
class LossScale {
 public:
  static LossScale fixed(double value, std::source_location where = std::source_location::current());
  static LossScale dynamic(const DynamicLossScaleOptions& options = {},
                           std::source_location where = std::source_location::current());

  bool is_dynamic() const noexcept { return is_dynamic_; }
  /// Of a fixed one, `initial` is what it always is.
  const DynamicLossScaleOptions& options() const noexcept { return options_; }

 private:
  LossScale(const DynamicLossScaleOptions& options, bool is_dynamic) : options_(options), is_dynamic_(is_dynamic) {}

  DynamicLossScaleOptions options_;
  bool is_dynamic_;
};

/// Another optimizer, for models that compute in 16 bits: the loss is multiplied by a scale before it is
/// differentiated, so that gradients of float16 do not vanish, and the gradients are divided by it in float
/// (Micikevicius et al. 2017, arXiv:1710.03740). A step with a gradient that is infinite or not a number is skipped.
///
/// ```cpp
/// df::train::LossScaleOptimizer optimizer(df::train::Adam(1e-3));
/// auto train = optimizer.minimize(loss);
/// ```
/// A step that is skipped changes no variable, slot, power of Adam's or global step, and so no schedule; a dynamic
/// scale is halved, and doubled after 2000 steps in a row that were not skipped: TensorFlow's LossScaleOptimizer and
/// PyTorch's GradScaler. What is beside the updates runs as ever: `update_operations(loss)`, and averages that a caller
/// moves after the step, by the values that the variables have kept. By a fixed scale steps are skipped as well.
///
/// `compute_gradients` gives the divided gradients, which are to be clipped or added up as any others. If one of them
/// has an element that is infinite or not a number, no element of any is a number, so that nothing done to them hides
/// it. `apply_gradients` looks at what it is given: means of accumulated gradients, where one bad batch skips the
/// update, or those that `SyncReplicas` has gathered, where one replica's bad gradients skip the step of all. There
/// `global_step` counts the skipped steps too, since replicas wait for it.
///
/// The state of a dynamic scale are the variables "current_loss_scale", float [], and "good_steps", int64 [], of the
/// graph of the first call, which savers save. Slots have the names that they have without it.
///
/// Thread safety: const, with a state that calls share: building, see Graph.
/// Errors: InvalidArgument for a LossScaleOptimizer within another one or a DecoupledWeightDecay, which it goes around:
/// `LossScaleOptimizer(AdamW(1e-3))`, and for a loss of another graph than that of the first call while that is there.
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
  /// How many steps in a row were not skipped, since the scale has changed. Errors: FailedPrecondition before the first
  /// call that builds, and of a fixed scale.
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
