#pragma once

#include <dflow/ops/math/binary.hpp>
#include <dflow/train/optimizer.hpp>

#include <source_location>
#include <span>
#include <type_traits>
#include <vector>

namespace dflow {

namespace detail {
AnyOutput any_clip_by_norm(const AnyOutput& x, double max_norm, bool of_average, const At& at);
}  // namespace detail

/// min(max(x, lowest), highest). The bounds are numbers, tensors or edges that broadcast with x.
template <AllowedFor<Maximum> T>
Output<T> clip_by_value(const Output<T>& x, const std::type_identity_t<Operand<T>>& lowest,
                        const std::type_identity_t<Operand<T>>& highest, const At& at = {}) {
  if (!x.is_valid()) {
    throw_error(Status::invalid_argument("clip_by_value: x is an empty Output").with_location(at.where));
  }
  return minimum(maximum(x, lowest.beside(x), {.where = at.where}), highest.beside(x), at);
}

/// x scaled down to a Euclidean norm of `max_norm` if its norm is larger. If `max_norm` is infinite, the result is x.
/// At x = 0 the gradient is the gradient of x. If finite elements have squares beyond the range of T (of float for
/// 16-bit floats), all elements become 0, as in TensorFlow. If an element is NaN, all become NaN.
template <Element T>
  requires is_floating_element<T>
Output<T> clip_by_norm(const Output<T>& x, double max_norm, const At& at = {}) {
  return Output<T>::unchecked(detail::any_clip_by_norm(x, max_norm, false, at));
}

/// As `clip_by_norm`, by the norm divided by the number of elements (TensorFlow's `clip_by_average_norm`).
template <Element T>
  requires is_floating_element<T>
Output<T> clip_by_average_norm(const Output<T>& x, double max_norm, const At& at = {}) {
  return Output<T>::unchecked(detail::any_clip_by_norm(x, max_norm, true, at));
}

namespace train {

using dflow::clip_by_average_norm;
using dflow::clip_by_norm;
using dflow::clip_by_value;

/// All gradients scaled down together: the norm over all of them is at most `max_norm` (Pascanu et al. 2012,
/// arXiv:1211.5063). A gradient that does not exist stays so. The rows of a sparse gradient are scaled, and count as
/// they are. If the norm is infinite or NaN, every element becomes NaN, as in TensorFlow.
///
/// Errors: InvalidArgument if there is no gradient.
std::vector<GradientAndVariable> clip_by_global_norm(std::vector<GradientAndVariable> gradients, double max_norm,
                                                     std::source_location where = std::source_location::current());

/// The Euclidean norm over all gradients: a scalar of the first gradient's element type, or float if that type has 16
/// bits.
AnyOutput global_norm(std::span<const GradientAndVariable> gradients,
                      std::source_location where = std::source_location::current());

}  // namespace train

using train::clip_by_global_norm;
using train::global_norm;

}  // namespace dflow
