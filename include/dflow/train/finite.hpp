#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/session/session.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::train {

/// Finds the floating-point variables of a graph that are not finite any more: a trainable variable with an element
/// that is infinite or NaN, another variable with an element that is NaN. Two reductions look at each variable, on its
/// own device. The constructor takes the variables that the graph has then, and adds its nodes once.
///
/// Thread safety: one thread at a time; for values of one moment, between steps.
/// Errors: of a step.
class NonFiniteVariables {
 public:
  explicit NonFiniteVariables(GraphStore& graph);

  /// Blocks. The names of the variables, in the order in which they were made. A variable without a value is not among
  /// them.
  std::vector<std::string> find(Session& session) const;

 private:
  struct Looked {
    std::string name;
    bool is_trained;
  };
  std::vector<Looked> variables_;
  std::vector<AnyOutput> are_initialized_;
  std::vector<AnyOutput> extremes_;  ///< the largest and the smallest element of each variable
};

namespace detail {
/// "; the variables 'w', 'b' and 2 others are not finite", or "; all variables are finite".
std::string say_not_finite(std::span<const std::string> variables);
/// The same for the variables of the graph as they are, or why they cannot be read.
std::string say_non_finite_variables(Session& session, GraphStore& graph);
/// "; x is nan in row 3 of 32" for the first element of `tensor`, named `x`, that is infinite or NaN. Empty if there is
/// none.
std::string say_non_finite(std::string_view x, const AnyTensor& tensor);
[[noreturn]] void throw_not_finite(double loss, std::int64_t step, Session& session, const Graph& graph,
                                   std::span<const AnyTensor* const> batch);
}  // namespace detail

/// Throws if `loss`, which a step of a loop of your own has fetched, is infinite or NaN. Otherwise it costs one
/// comparison. `fit` does the same by itself.
///
/// ```cpp
/// const float loss = step(x, y).scalar();
/// df::train::require_finite(loss, i, session, graph, x, y);
/// ```
/// step: its number, for the error. batch: tensors that the step was fed, to be searched for the reason. The step has
/// updated the variables already: go on from a checkpoint. `LossScaleOptimizer(optimizer, LossScale::fixed(1))` skips
/// such an update.
///
/// Errors: InvalidArgument, as of `check_numerics`. It names the step, the tensors and rows of the batch, and the
/// variables that are not finite.
template <Element... Ts>
void require_finite(double loss, std::int64_t step, Session& session, const Graph& graph, const Tensor<Ts>&... batch) {
  if (std::isfinite(loss)) [[likely]]
    return;
  const std::array<const AnyTensor*, sizeof...(Ts)> tensors{&batch...};
  detail::throw_not_finite(loss, step, session, graph, tensors);
}

}  // namespace dflow::train
