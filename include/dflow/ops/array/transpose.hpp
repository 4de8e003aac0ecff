#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>

namespace dflow {

/// x with its dimensions in another order: dimension i of the result is dimension perm[i] of x.
struct Transpose : StandardOp<"Transpose", AllTypes, IndexTypes> {
  using Inputs = In<T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tperm"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The permutation y with y[x[i]] = i.
struct InvertPermutation : StandardOp<"InvertPermutation", IndexTypes> {
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

namespace detail {
AnyOutput any_transpose(const AnyOutput& x, const IndexList& perm, const At& at);
}  // namespace detail

/// x with its dimensions reversed, or in the order `perm`: `transpose(x, {0, 3, 1, 2})` makes NHWC to NCHW.
///
/// Errors: InvalidArgument unless perm holds each of 0 ... rank-1 once.
template <AllowedFor<Transpose> T>
Output<T> transpose(const Output<T>& x, const IndexList& perm = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_transpose(x, perm, at));
}

/// x: [n], a permutation of 0 ... n-1.
///
/// Errors: InvalidArgument in the step if it is none.
template <AllowedFor<InvertPermutation> T>
Output<T> invert_permutation(const Output<T>& x, const At& at = {}) {
  return apply<InvertPermutation>(x, {}, at);
}

}  // namespace dflow
