#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>

#include <utility>
#include <vector>

namespace dflow {

/// The elements of tensor in the order they have, in another shape.
struct Reshape : StandardOp<"Reshape", AllTypes, IndexTypes> {
  using Inputs = In<T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tshape"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The input with a dimension of 1 put in before dimension `dim`.
struct ExpandDims : StandardOp<"ExpandDims", AllTypes> {
  using Inputs = In<T, std::int32_t>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The input without its dimensions of 1, or without the listed ones.
struct Squeeze : StandardOp<"Squeeze", AllTypes> {
  struct Attrs {
    std::vector<std::int64_t> squeeze_dims;
  };
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
AnyOutput any_reshape(const AnyOutput& x, const IndexList& shape, const At& at);
AnyOutput any_expand_dims(const AnyOutput& x, std::int32_t axis, const At& at);
}  // namespace detail

/// The elements of x, in the order they have, in another shape; they are not copied. One dimension may be -1: it
/// follows from the number of elements. If another dimension is 0 and x has no elements, the -1 follows from the
/// dimensions other than 0: [0, 3] becomes {0, -1} as [0, 3].
///
/// Errors: InvalidArgument if the numbers of elements differ, a dimension is below -1, or two are -1.
template <AllowedFor<Reshape> T>
Output<T> reshape(const Output<T>& x, const IndexList& shape, const At& at = {}) {
  return Output<T>::unchecked(detail::any_reshape(x, shape, at));
}

/// x: [d0, ..., dn] gives the same elements with a dimension of 1 before dimension `axis`; a negative axis counts from
/// behind, -1 puts it at the end.
///
/// Errors: InvalidArgument unless -rank-1 <= axis <= rank.
template <class A, class B>
  requires Accepts<ExpandDims, A, B>
Output<ElementFor<ExpandDims, A, B>> expand_dims(const A& x, const B& axis, const At& at = {}) {
  return apply<ExpandDims>(x, axis, {}, at);
}

/// x without its dimensions of 1; if axes are given, without the dimensions of the given axes only.
///
/// Errors: InvalidArgument if an axis is outside [-rank, rank), if its dimension is not 1, or if the axes are an edge.
template <AllowedFor<Squeeze> T>
Output<T> squeeze(const Output<T>& x, const IndexList& axes = {}, const At& at = {}) {
  return apply<Squeeze>(x, {.squeeze_dims = axes.numbers(Squeeze::name, at)}, at);
}

}  // namespace dflow
