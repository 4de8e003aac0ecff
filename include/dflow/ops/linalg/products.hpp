#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/math/binary.hpp>

/// Products of vectors and of the diagonals of matrices, which other ops express.

namespace dflow {

namespace detail {
AnyOutput any_cross(const AnyOutput& a, const AnyOutput& b, const At& at);
AnyOutput any_trace(const AnyOutput& x, const At& at);
}  // namespace detail

/// The vector products of the vectors of three elements along the last axes of a and b, [..., 3]: TensorFlow's Cross.
/// Other dimensions broadcast.
///
/// Errors: InvalidArgument if the last dimension is not 3, or the shapes do not broadcast.
template <class A, class B>
  requires Accepts<Mul, A, B>
Output<ElementFor<Mul, A, B>> cross(const A& a, const B& b, const At& at = {}) {
  const auto edges = detail::edges_for<Mul>(at, a, b);
  return Output<ElementFor<Mul, A, B>>::unchecked(detail::any_cross(edges[0], edges[1], at));
}

/// The sums of the diagonals of the matrices [..., m, n]: [...].
///
/// Errors: InvalidArgument if x has less than two dimensions.
template <AllowedFor<Add> T>
Output<T> trace(const Output<T>& x, const At& at = {}) {
  return Output<T>::unchecked(detail::any_trace(x, at));
}

}  // namespace dflow
