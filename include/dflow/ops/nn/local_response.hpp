#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>

namespace dflow {

/// What `local_response_normalization` divides by; the defaults are TensorFlow's.
struct LocalResponseAttrs {
  std::int64_t depth_radius = 5;  ///< channels to either side
  double bias = 1;
  double alpha = 1;
  double beta = 0.5;
};

namespace detail {
AnyOutput any_local_response(const AnyOutput& x, const LocalResponseAttrs& attrs, const At& at);
}  // namespace detail

/// x: [..., channels] gives the same shape, each element divided by the size of the elements around it in the last
/// dimension (Krizhevsky, Sutskever and Hinton 2012, section 3.3):
///
/// y[..., c] = x[..., c] / (bias + alpha * sum of x[..., j]^2)^beta, over j from c - depth_radius to c + depth_radius.
///
/// It is TensorFlow's LRN, as a composition with gradients of any order; TensorFlow's LRNGrad is its gradient. The sums
/// are those of average pooling. 16-bit floats are computed in float, and the result is rounded once.
///
/// ```cpp
/// auto y = df::local_response_normalization(images, {.depth_radius = 4, .alpha = 0.001 / 9, .beta = 0.75});
/// ```
/// Errors: InvalidArgument if x is a scalar or has an unknown rank, or depth_radius is negative or 2^30 or more.
template <class T>
  requires contains_v<T, FloatTypes>
Output<T> local_response_normalization(const Output<T>& x, const LocalResponseAttrs& attrs = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_local_response(x, attrs, at));
}

}  // namespace dflow
