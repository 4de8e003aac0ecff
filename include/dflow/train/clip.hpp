#pragma once

#include <dflow/ops/math/binary.hpp>
#include <dflow/train/optimizer.hpp>

#include <source_location>
#include <vector>

namespace dflow {

namespace detail {
AnyOutput any_clip_by_norm(const AnyOutput& x, double max_norm, const At& at);
}  // namespace detail

/// min(max(x, lowest), highest).
template <AllowedFor<Maximum> T>
Output<T> clip_by_value(const Output<T>& x, std::type_identity_t<T> lowest, std::type_identity_t<T> highest,
                        const At& at = {}) {
  const auto scalar = [&](T value) {
    if (!x.is_valid())
      throw_error(Status::invalid_argument("clip_by_value: x is an empty Output").with_location(at.where));
    return Output<T>::unchecked(detail::any_constant(*x.graph(), Tensor<T>::full({}, value), {.where = at.where}));
  };
  return minimum(maximum(x, scalar(lowest), {.where = at.where}), scalar(highest), at);
}

/// x scaled down to an Euclidean norm of `max_norm` where it is longer; of infinity: x. The gradient at x = 0 is that
/// of x. Where finite numbers have squares beyond those of T, for 16-bit floats of float, all becomes 0, as
/// TensorFlow's.
template <Element T>
  requires is_floating_element<T>
Output<T> clip_by_norm(const Output<T>& x, double max_norm, const At& at = {}) {
  return Output<T>::unchecked(detail::any_clip_by_norm(x, max_norm, at));
}

namespace train {

/// All gradients scaled down together so that the norm over all of them is at most `max_norm` (Pascanu et al. 2012,
/// arXiv:1211.5063). Gradients that do not exist stay so; the rows of sparse ones are scaled and count as they are. If
/// the norm is infinite or NaN, every element becomes NaN, as TensorFlow's.
///
/// Errors: InvalidArgument if there is no gradient.
std::vector<GradientAndVariable> clip_by_global_norm(std::vector<GradientAndVariable> gradients, double max_norm,
                                                     std::source_location where = std::source_location::current());

/// The Euclidean norm over all gradients, a scalar of the first one's element type, float if that has 16 bits.
AnyOutput global_norm(std::span<const GradientAndVariable> gradients,
                      std::source_location where = std::source_location::current());

}  // namespace train

}  // namespace dflow
