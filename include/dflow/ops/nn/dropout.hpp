#pragma once

#include <dflow/op/build.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/random/random.hpp>

#include <cstdint>
#include <type_traits>

namespace dflow {

struct DropoutOptions {
  std::uint64_t seed = 0;  ///< 0: from the graph's seed, or another seed in each session
};

namespace detail {
AnyOutput dropout_by(const Expr& x, const Expr& keep_prob, const DropoutOptions& options, const At& at);
AnyOutput any_dropout(const AnyOutput& x, double keep_prob, const DropoutOptions& options, const At& at);
AnyOutput any_dropout(const AnyOutput& x, const AnyOutput& keep_prob, const DropoutOptions& options, const At& at);
}  // namespace detail

/// Keeps each element of x with probability `keep_prob`, and divides it by `keep_prob`, which keeps its expectation.
/// The other elements become 0, NaNs too (Srivastava et al. 2014). The choice is drawn anew in each step, in float if x
/// has 16 bits. The gradient passes through the kept elements.
///
/// ```cpp
/// auto thinned = df::dropout(hidden, 0.5f);
/// ```
/// Errors: InvalidArgument unless 0 < keep_prob <= 1.
template <AllowedFor<RandomUniform> T>
Output<T> dropout(const Output<T>& x, float keep_prob, const DropoutOptions& options = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_dropout(x, keep_prob, options, at));
}

/// The same with a probability that each step is fed, a scalar: 1 when the network is not being trained.
///
/// Errors: InvalidArgument if keep_prob is known to be no scalar, and when the step runs unless 0 < keep_prob <= 1.
template <AllowedFor<RandomUniform> T>
Output<T> dropout(const Output<T>& x, const std::type_identity_t<Operand<T>>& keep_prob,
                  const DropoutOptions& options = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_dropout(x, keep_prob.beside(x), options, at));
}

}  // namespace dflow
