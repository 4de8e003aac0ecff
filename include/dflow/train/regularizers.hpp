#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/graph/output.hpp>

#include <functional>

namespace dflow {

/// The term that a variable adds to the loss: a scalar edge made of the edge that reads the variable.
using Regularizer = std::function<AnyOutput(const AnyOutput& variable)>;

/// Regularizers that keep the variables of layers small, as in Keras. Sums over 16-bit variables are taken in float.
///
/// Errors: InvalidArgument for a factor that is negative or not finite.
namespace regularizer {

/// factor * sum |w|.
Regularizer l1(double factor);
/// factor * sum w^2.
Regularizer l2(double factor);
/// Both.
Regularizer l1_l2(double l1_factor, double l2_factor);

}  // namespace regularizer

namespace detail {
AnyOutput any_regularization_loss(GraphStore& graph, DType dtype, const At& at);
}  // namespace detail

/// The sum of the losses from the regularisers of all layers that the graph has now, a scalar; 0 if there are none.
/// The losses are the graph's collection "regularization_losses".
///
/// ```cpp
/// auto train = df::train::Adam(1e-3f).minimize(loss + df::regularization_loss<float>(graph));
/// ```
template <Element T>
  requires is_floating_element<T>
Output<T> regularization_loss(Graph& graph, const At& at = {}) {
  return Output<T>::unchecked(detail::any_regularization_loss(*graph.store(), dtype_of<T>, at));
}

}  // namespace dflow
