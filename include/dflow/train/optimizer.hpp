#pragma once

#include <dflow/autodiff/gradients.hpp>
#include <dflow/ops/state/typed_variable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

namespace dflow::train {

/// A learning rate or another hyperparameter: a number, or an edge such as a schedule of the global step. Double
/// variables get it in double: give them `0.9` and not `0.9f`, and edges that are double.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument for an empty edge.
class Hyperparameter {
 public:
  // NOLINTBEGIN(google-explicit-constructor): numbers and edges are hyperparameters
  Hyperparameter(double value) : value_(value) {}
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
/// The gradient's elements: of a sparse one those of the rows that it has.
inline const AnyOutput& values_of(const Gradient& gradient) {
  return gradient.slices ? gradient.slices->values : gradient.dense;
}
inline AnyOutput& values_of(Gradient& gradient) { return gradient.slices ? gradient.slices->values : gradient.dense; }
/// The same edges as nodes of the body that is being built, which what is built there may wait for.
std::vector<GradientAndVariable> in_this_body(std::span<const GradientAndVariable> gradients);
}  // namespace detail

/// What is computed before gradients are used (TensorFlow's `gate_gradients`). A value that has been read is no other
/// once its variable is updated, so that the results are the same; but an update that comes while a value is held has
/// to copy the variable, for which there must be memory, and takes cores from the gradients.
enum class GateGradients : std::uint8_t {
  none,   ///< nothing: TensorFlow's GATE_NONE
  op,     ///< all gradients of the op that one comes from: GATE_OP
  graph,  ///< all gradients of the step, before any variable is updated: GATE_GRAPH
};

/// How `Optimizer::compute_gradients` differentiates.
struct ComputeGradientsOptions {
  GradientAggregation aggregation = GradientAggregation::add_n;
  GateGradients gate_gradients = GateGradients::none;
};

struct MinimizeOptions {
  /// What to train; the graph's collection "trainable_variables" where empty.
  std::vector<AnyVariable> variables = {};
  /// Incremented after each update.
  std::optional<Variable<std::int64_t>> global_step = {};
  /// Runs `update_operations(loss)` with each step: batch normalisation's moving averages, for example.
  bool run_update_ops = true;
  GradientAggregation aggregation = GradientAggregation::add_n;
  GateGradients gate_gradients = GateGradients::none;

  ComputeGradientsOptions differentiation() const { return {aggregation, gate_gradients}; }
};

/// The operations of the graph's collection "update_ops" that belong to a step that computes the loss: those that need,
/// beyond what the loss itself does, nothing that is fed, dequeued or drawn, and no variable that is trained. So the
/// normalisation of another model, or of one that is fed other inputs, is not among them, and a count of steps is.
/// `minimize`, `fit` and what they are made of run them by themselves.
///
/// Errors: InvalidArgument for an empty Output.
std::vector<Operation> update_operations(const AnyOutput& loss);
namespace detail {
/// None, where the options say so.
std::vector<Operation> update_operations_of(const AnyOutput& loss, const MinimizeOptions& options);
}  // namespace detail

/// Builds the nodes that make a loss smaller: gradients of the loss, and an update of each variable by its gradient.
///
/// ```cpp
/// auto train = df::train::Adam(1e-3f).minimize(loss);
/// session.run({{images, x}, {labels, y}}, train);
/// ```
///
/// What an optimizer keeps per variable (a slot) is a variable named after it, "w/Adam" for example, and placed where
/// it is.
///
/// A Half or BFloat16 variable is trained through a float copy of it, "w/master", since most updates are less than its
/// last digit: slots ("w/master/Adam"), hyperparameters and updates are float, and the variable is the copy, rounded.
/// An element that something else has changed since is taken over into the copy before the next update (Micikevicius et
/// al. 2017, arXiv:1710.03740). So the whole variable is looked at in each step, where its gradient is sparse too, and
/// of two steps that train it at one time one may be lost: float and double variables have neither.
///
/// Thread safety: const; builds, see Graph.
/// Errors: InvalidArgument if there is no variable, the loss depends on none, or the shape of one with slots is not
/// known.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// One step: returns when run the updates are done. `At::name` names the operation outside of the optimizer's name
  /// scope. The loss is summed if it is no scalar. It runs `update_operations(loss)` as well, unless told otherwise.
  Operation minimize(const AnyOutput& loss, const MinimizeOptions& options = {}, const At& at = {}) const;

  /// The two halves of `minimize`, to look at or change the gradients between them. Variables that the loss does not
  /// depend on come with a gradient that does not exist.
  std::vector<GradientAndVariable> compute_gradients(
      const AnyOutput& loss, std::vector<AnyVariable> variables = {}, const ComputeGradientsOptions& options = {},
      std::source_location where = std::source_location::current()) const;
  Operation apply_gradients(std::span<const GradientAndVariable> gradients,
                            const std::optional<Variable<std::int64_t>>& global_step = {}, const At& at = {}) const;

 protected:
  /// What one call of apply_gradients builds, on variables of float and double: its updates share hyperparameters and
  /// state.
  class Updates {
   public:
    virtual ~Updates() = default;
    virtual Operation apply_dense(const AnyVariable& variable, const AnyOutput& gradient) = 0;
    virtual Operation apply_sparse(const AnyVariable& variable, const IndexedSlices& gradient) = 0;
    /// After all updates: what changes the shared state.
    virtual std::vector<Operation> finish(std::span<const Operation> updates) {
      return static_cast<void>(updates), std::vector<Operation>{};
    }
  };

  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;

  friend class DecoupledWeightDecay;  // its updates are another optimizer's, and more
  friend class MirroredReplicas;

  /// What `compute_gradients` gives of a loss that is an edge, and what `apply_gradients` builds: for an optimizer that
  /// does more than update by a rule of its own.
  virtual std::vector<GradientAndVariable> differentiate(const AnyOutput& loss, std::vector<AnyVariable> variables,
                                                         const ComputeGradientsOptions& options,
                                                         std::source_location where) const;
  virtual Operation update(std::span<const GradientAndVariable> gradients,
                           const std::optional<Variable<std::int64_t>>& global_step, const At& at) const;
  /// The same for one of several replicas with equal gradients: what they share only one of them changes.
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

/// The variable "w/<name>" of zeros with the shape and place of `variable` "w", and its type where `dtype` says no
/// other.
///
/// Errors: InvalidArgument if the variable's shape is not known.
AnyVariable make_slot(const AnyVariable& variable, std::string_view name, DType dtype = DType::invalid);

}  // namespace dflow::train
