#pragma once

#include <dflow/autodiff/gradients.hpp>
#include <dflow/ops/state/typed_variable.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::train {

/// A learning rate or another hyperparameter: a number, or an edge, for example a schedule of the global step. Double
/// variables get it in double: give them `0.9` and not `0.9f`, or a double edge.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument for an empty edge, and for a number that is infinite or NaN.
class Hyperparameter {
 public:
  // NOLINTBEGIN(google-explicit-constructor): numbers and edges are hyperparameters
  Hyperparameter(double value, std::source_location where = std::source_location::current());
  Hyperparameter(const Output<float>& edge, std::source_location where = std::source_location::current())
      : Hyperparameter(AnyOutput(edge), where) {}
  Hyperparameter(const Output<double>& edge, std::source_location where = std::source_location::current())
      : Hyperparameter(AnyOutput(edge), where) {}
  // NOLINTEND(google-explicit-constructor)

  /// The scalar as an edge of element type `dtype`.
  AnyOutput edge(GraphStore& graph, DType dtype) const;

 private:
  Hyperparameter(const AnyOutput& edge, std::source_location where);

  double value_ = 0;
  AnyOutput edge_;
};

struct GradientAndVariable {
  Gradient gradient;
  AnyVariable variable;
};

namespace detail {
/// The gradient's elements. A sparse gradient has the elements of its rows.
inline const AnyOutput& values_of(const Gradient& gradient) {
  return gradient.slices ? gradient.slices->values : gradient.dense;
}
inline AnyOutput& values_of(Gradient& gradient) { return gradient.slices ? gradient.slices->values : gradient.dense; }
/// The same edges as nodes of the body that is being built, so that other nodes of the body can wait for them.
std::vector<GradientAndVariable> in_this_body(std::span<const GradientAndVariable> gradients);
}  // namespace detail

/// The gradients that are computed before any of them is used (TensorFlow's `gate_gradients`). The results are the
/// same for all three, since a value that was read does not change when its variable is updated. An update that comes
/// while a value is held has to copy the variable: it needs memory for the copy, and takes cores from the gradients.
enum class GateGradients : std::uint8_t {
  none,   ///< nothing: TensorFlow's GATE_NONE
  op,     ///< all gradients of the op that the gradient comes from: GATE_OP
  graph,  ///< all gradients of the step, before any variable is updated: GATE_GRAPH
};

/// How `Optimizer::compute_gradients` differentiates.
struct ComputeGradientsOptions {
  GradientAggregation aggregation = GradientAggregation::add_n;
  GateGradients gate_gradients = GateGradients::none;
};

struct MinimizeOptions {
  /// The variables to train; if empty, the graph's collection "trainable_variables".
  std::vector<AnyVariable> variables = {};
  /// Incremented after each update.
  std::optional<Variable<std::int64_t>> global_step = {};
  /// Runs `update_operations(loss)` with each step: batch normalisation's moving averages, for example.
  bool run_update_ops = true;
  GradientAggregation aggregation = GradientAggregation::add_n;
  GateGradients gate_gradients = GateGradients::none;
  /// Called with the gradients before they are applied; returns the gradients to apply, and may build nodes that look
  /// at them. Null: the gradients stay as they are.
  ///
  /// ```cpp
  /// .change = [](auto gradients) { return df::train::clip_by_global_norm(std::move(gradients), 5.0); }
  /// ```
  /// The gradients are: of `SyncReplicas`, the means over the replicas that count, in the step of the leader; of
  /// `MirroredReplicas`, the means over all replicas, in a call for each replica; of `StaleSyncReplicas`, this
  /// replica's own; of accumulated gradients, the means.
  std::function<std::vector<GradientAndVariable>(std::vector<GradientAndVariable>)> change = nullptr;

  ComputeGradientsOptions differentiation() const { return {aggregation, gate_gradients}; }
};

/// The operations of the graph's collection "update_ops" that belong to a step that computes the loss. Beyond the
/// nodes of the loss itself, an operation of the result needs no feed, no dequeue, no random draw and no trained
/// variable. The normalisation of another model, or of a model with other fed inputs, is not in the result; a count of
/// steps is. `minimize`, `fit` and their parts run the operations by themselves.
///
/// Errors: InvalidArgument for an empty Output.
std::vector<Operation> update_operations(const AnyOutput& loss);
namespace detail {
/// None, if the options say so.
std::vector<Operation> update_operations_of(const AnyOutput& loss, const MinimizeOptions& options);
/// What `MinimizeOptions::change` makes of the gradients.
inline std::vector<GradientAndVariable> changed(std::vector<GradientAndVariable> gradients,
                                                const MinimizeOptions& options) {
  return options.change ? options.change(std::move(gradients)) : gradients;
}
}  // namespace detail

/// Builds the nodes that make a loss smaller: gradients of the loss, and an update of each variable by its gradient.
///
/// ```cpp
/// auto train = df::train::Adam(1e-3f).minimize(loss);
/// session.run({{images, x}, {labels, y}}, train);
/// ```
///
/// An optimizer keeps its state per variable in slots. A slot is a variable named after its variable, "w/Adam" for
/// example, and placed with it.
///
/// A Half or BFloat16 variable is trained through a float copy of it, "w/master", since most updates are less than its
/// last digit. Slots ("w/master/Adam"), hyperparameters and updates are float, and the variable is the rounded copy.
/// If something else has changed an element of the variable, the copy takes over the element before the next update
/// (Micikevicius et al. 2017, arXiv:1710.03740). Each step therefore reads the whole variable, even if its gradient is
/// sparse. If two steps train the variable at one time, one update may be lost. Float and double variables have
/// neither limit.
///
/// Thread safety: const; builds, see Graph.
/// Errors: InvalidArgument if there is no variable, if the loss depends on none, or if the shape of a variable with
/// slots is not known.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One step. A run of the operation returns when the updates are done. `At::name` names the operation outside the
  /// optimizer's name scope. A loss that is no scalar is summed. The operation also runs `update_operations(loss)`,
  /// unless the options say otherwise.
  Operation minimize(const AnyOutput& loss, const MinimizeOptions& options = {}, const At& at = {}) const;

  /// The two halves of `minimize`, to look at or change the gradients between them. A variable that the loss does not
  /// depend on comes with a gradient that does not exist.
  std::vector<GradientAndVariable> compute_gradients(
      const AnyOutput& loss, std::vector<AnyVariable> variables = {}, const ComputeGradientsOptions& options = {},
      std::source_location where = std::source_location::current()) const;
  Operation apply_gradients(std::span<const GradientAndVariable> gradients,
                            const std::optional<Variable<std::int64_t>>& global_step = {}, const At& at = {}) const;

 protected:
  /// The nodes of one call of apply_gradients, on float and double variables. All updates of a call share
  /// hyperparameters and state.
  class Updates {
   public:
    virtual ~Updates() = default;
    virtual Operation apply_dense(const AnyVariable& variable, const AnyOutput& gradient) = 0;
    virtual Operation apply_sparse(const AnyVariable& variable, const IndexedSlices& gradient) = 0;
    /// Called after all updates: returns the operations that change the shared state.
    virtual std::vector<Operation> finish(std::span<const Operation> updates) {
      return static_cast<void>(updates), std::vector<Operation>{};
    }
  };

  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;

  friend class DecoupledWeightDecay;  // its updates are another optimizer's, and more
  friend class MirroredReplicas;

  /// The bodies of `compute_gradients`, for a loss that is a floating-point edge, and of `apply_gradients`. An
  /// optimizer overrides them to do more than update by a rule of its own.
  virtual std::vector<GradientAndVariable> differentiate(const AnyOutput& loss, std::vector<AnyVariable> variables,
                                                         const ComputeGradientsOptions& options,
                                                         std::source_location where) const;
  virtual Operation update(std::span<const GradientAndVariable> gradients,
                           const std::optional<Variable<std::int64_t>>& global_step, const At& at) const;
  /// The same for one of several replicas with equal gradients. Only one replica changes the shared state.
  virtual Operation update_replica(std::span<const GradientAndVariable> gradients,
                                   const std::optional<Variable<std::int64_t>>& global_step, bool changes_shared,
                                   const At& at) const {
    return static_cast<void>(changes_shared), update(gradients, global_step, at);
  }
  /// Errors: InvalidArgument if none of the gradients exists.
  GraphStore& graph_of(std::span<const GradientAndVariable> gradients, std::source_location where) const;

  virtual std::string_view name() const = 0;
  virtual std::unique_ptr<Updates> start(GraphStore& graph) const = 0;
};

/// The variable "w/<name>" with the shape and place of `variable` "w", and with `initial` in all elements. Its type is
/// `dtype`, a floating-point one, by default the type of `variable`.
///
/// Errors: InvalidArgument if the variable's shape is not known.
AnyVariable make_slot(const AnyVariable& variable, std::string_view name, DType dtype = DType::invalid,
                      double initial = 0);

}  // namespace dflow::train
