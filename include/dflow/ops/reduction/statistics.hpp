#pragma once

#include <dflow/ops/reduction/reduce.hpp>

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

/// Functions of TensorFlow's library over axes, which reductions express. 16-bit floats are computed in float, and a
/// result is rounded once.

namespace dflow {

/// The mean of the elements along axes, and the mean square of their distances from it.
template <class T>
struct Moments {
  Output<T> mean;
  Output<T> variance;
};

/// What the moments of a set follow from; those of a union of sets follow from their sums.
template <class T>
struct SufficientStatistics {
  Output<T> count;                 ///< of the elements that each sum has, a scalar
  Output<T> mean_ss;               ///< their sum, each less the shift
  Output<T> variance_ss;           ///< the sum of their squares, each less the shift
  std::optional<Output<T>> shift;  ///< as it was given
};

namespace detail {
AnyOutput any_logsumexp(const AnyOutput& x, const IndexList& axes, bool keep_dims, const At& at);
AnyOutput any_lbeta(const AnyOutput& x, const At& at);
AnyOutput any_zero_fraction(const AnyOutput& x, const At& at);
AnyOutput any_l2_normalize(const AnyOutput& x, const IndexList& axes, double epsilon, const At& at);
std::array<AnyOutput, 2> any_moments(const AnyOutput& x, const IndexList& axes, bool keep_dims, const At& at);
/// Count, sum and sum of squares. shift: empty for none.
std::array<AnyOutput, 3> any_statistics(const AnyOutput& x, const IndexList& axes, const AnyOutput& shift,
                                        bool keep_dims, const At& at);
std::array<AnyOutput, 2> moments_of(const AnyOutput& count, const AnyOutput& sum, const AnyOutput& squares,
                                    const AnyOutput& shift, const At& at);
AnyOutput any_accumulate_n(std::span<const AnyOutput> values, const At& at);
}  // namespace detail

/// log(sum(exp(x))) along axes, without an overflow on the way: the largest element is taken out before. Rows of
/// -infinity give -infinity, and so do no elements; rows with infinity give infinity.
///
/// Errors: as reduce_sum.
template <class T>
  requires contains_v<T, FloatTypes>
Output<T> reduce_logsumexp(const Output<T>& x, const IndexList& axes = {}, ReduceAttrs attrs = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_logsumexp(x, axes, attrs.keep_dims, at));
}

/// The logarithm of the absolute value of the multivariate beta function of the last axis: x [..., k] gives [...], the
/// sum of lgamma(x) less lgamma of the sum. For k = 0 it is -infinity.
///
/// Errors: InvalidArgument if x is a scalar.
template <class T>
  requires contains_v<T, FloatTypes>
Output<T> lbeta(const Output<T>& x, const At& at = {}) {
  return Output<T>::unchecked(detail::any_lbeta(x, at));
}

/// The share of the elements of x that are 0; not a number if x has none.
template <AllowedFor<Sum> T>
Output<float> zero_fraction(const Output<T>& x, const At& at = {}) {
  return Output<float>::unchecked(detail::any_zero_fraction(x, at));
}

/// x divided by its Euclidean norm along axes, or by sqrt(epsilon) if that is larger.
///
/// ```cpp
/// auto unit_rows = df::l2_normalize(x, 1);
/// ```
/// Errors: as reduce_sum.
template <class T>
  requires contains_v<T, FloatTypes>
Output<T> l2_normalize(const Output<T>& x, const IndexList& axes = {}, double epsilon = 1e-12, const At& at = {}) {
  return Output<T>::unchecked(detail::any_l2_normalize(x, axes, epsilon, at));
}

/// Mean and variance along axes; the variance is that of the elements themselves, divided by their number.
///
/// ```cpp
/// auto [mean, variance] = df::moments(x, {0, 1, 2});   // of each channel
/// ```
/// Errors: as reduce_sum.
template <class T>
  requires contains_v<T, FloatTypes>
Moments<T> moments(const Output<T>& x, const IndexList& axes = {}, ReduceAttrs attrs = {}, const At& at = {}) {
  const auto [mean, variance] = detail::any_moments(x, axes, attrs.keep_dims, at);
  return {Output<T>::unchecked(mean), Output<T>::unchecked(variance)};
}

/// Count, sum and sum of squares along axes. A shift near the mean, which broadcasts to x, keeps digits of the
/// variance.
///
/// Errors: as reduce_sum.
template <class T>
  requires contains_v<T, FloatTypes>
SufficientStatistics<T> sufficient_statistics(const Output<T>& x, const IndexList& axes = {},
                                              std::optional<std::type_identity_t<Output<T>>> shift = std::nullopt,
                                              ReduceAttrs attrs = {}, const At& at = {}) {
  const auto [count, sum, squares] =
      detail::any_statistics(x, axes, shift ? AnyOutput(*shift) : AnyOutput(), attrs.keep_dims, at);
  return {Output<T>::unchecked(count), Output<T>::unchecked(sum), Output<T>::unchecked(squares), shift};
}

/// The moments that the statistics say. A shift must broadcast to them.
template <class T>
  requires contains_v<T, FloatTypes>
Moments<T> normalize_moments(const SufficientStatistics<T>& statistics, const At& at = {}) {
  const AnyOutput shift = statistics.shift ? AnyOutput(*statistics.shift) : AnyOutput();
  const auto [mean, variance] =
      detail::moments_of(statistics.count, statistics.mean_ss, statistics.variance_ss, shift, at);
  return {Output<T>::unchecked(mean), Output<T>::unchecked(variance)};
}

/// The sum of any number of tensors of one shape, as `add_n`: each is added to the sum as soon as it is there and the
/// ones before it are added, and its memory is free then.
///
/// Errors: InvalidArgument if there are no values or their shapes differ.
template <AllowedFor<Sum> T>
Output<T> accumulate_n(const std::vector<Output<T>>& values, const At& at = {}) {
  const std::vector<AnyOutput> edges(values.begin(), values.end());
  return Output<T>::unchecked(detail::any_accumulate_n(edges, at));
}
template <AllowedFor<Sum> T>
Output<T> accumulate_n(std::initializer_list<Output<T>> values, const At& at = {}) {
  return accumulate_n(std::vector<Output<T>>(values), at);
}

}  // namespace dflow
