#pragma once

#include <dflow/op/build.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/index_list.hpp>

namespace dflow {

struct ReduceAttrs {
  /// Keeps the reduced dimensions, as 1.
  bool keep_dims = false;
};

namespace detail {
/// Fails unless input 1 can be axes of input 0: a vector or a scalar, each axis in range and named once.
void check_reduction_axes(const InferContext& context);
void infer_reduction(InferContext& context, const ReduceAttrs& attrs);
}  // namespace detail

/// The base of reductions: inputs `input` and `reduction_indices` (a vector of axes, or one axis), output without these
/// axes.
template <FixedString Name, class AllowedTypes>
struct Reduction : StandardOp<Name, AllowedTypes> {
  using Attrs = ReduceAttrs;
  using Inputs = In<TypeParam<0>, std::int32_t>;
  static void infer(InferContext& context) { detail::infer_reduction(context, context.attrs<Reduction>()); }
};

/// The sum over axes; 0 over no elements.
struct Sum : Reduction<"Sum", NumberTypes> {
  static void gradient(GradientContext& context);
};
/// The arithmetic mean over axes; NaN over no elements. Integers are summed in 64 bits, and their mean is rounded
/// toward 0; over no elements it is 0.
struct Mean : Reduction<"Mean", NumberTypes> {
  static void gradient(GradientContext& context);
};
/// The product over axes; 1 over no elements.
struct Prod : Reduction<"Prod", NumberTypes> {
  static void gradient(GradientContext& context);
};
/// The maximum over axes; the lowest value of the type over no elements.
struct Max : Reduction<"Max", RealTypes> {
  static void gradient(GradientContext& context);
};
/// The minimum over axes; the highest value of the type over no elements.
struct Min : Reduction<"Min", RealTypes> {
  static void gradient(GradientContext& context);
};
/// Whether all elements along axes are true; true over no elements.
struct All : Reduction<"All", TypeList<bool>> {
  static constexpr bool gradient_stops = true;
};
/// Whether any element along axes is true; false over no elements.
struct Any : Reduction<"Any", TypeList<bool>> {
  static constexpr bool gradient_stops = true;
};

/// The position of the first maximum along one axis.
struct ArgMax : StandardOp<"ArgMax", RealTypes> {
  using Inputs = In<T, std::int32_t>;
  using Outputs = Out<std::int64_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};
/// The position of the first minimum along one axis.
struct ArgMin : StandardOp<"ArgMin", RealTypes> {
  using Inputs = In<T, std::int32_t>;
  using Outputs = Out<std::int64_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// A shape with 1 in place of each dimension that `reduction_indices` names. Gradients of reductions are reshaped to
/// it.
struct ReducedShape : StandardOp<"ReducedShape", TypeList<std::int32_t>> {
  using Inputs = In<T, T>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

namespace detail {
/// The inputs of a reduction. If no axes are given, it reduces all axes, and x is flattened if its rank is unknown.
struct ReduceOperands {
  AnyOutput x;
  AnyOutput axes;
};
ReduceOperands reduce_operands(const AnyOutput& x, const IndexList& axes, bool keep_dims, std::string_view op,
                               const At& at);
AnyOutput arg_operand(const AnyOutput& x, std::int32_t axis, std::string_view op, const At& at);

/// The sum of all elements, a scalar.
Expr sum_of_all(const Expr& x);
/// `reduced`, the output of a reduction of x over `axes`, with the reduced dimensions put back as 1.
Expr with_reduced_dims(const Expr& reduced, const Expr& x, const Expr& axes, bool keep_dims);

template <class O, class T>
Output<T> reduce(const Output<T>& x, const IndexList& axes, const ReduceAttrs& attrs, const At& at) {
  const ReduceOperands operands = reduce_operands(x, axes, attrs.keep_dims, O::name, at);
  return Output<T>::unchecked(build<O>({operands.x, operands.axes}, attrs, at));
}
}  // namespace detail

// Reductions: x: [d0, ..., dn] loses the dimensions listed in `axes`, or keeps them as 1 with keep_dims; a negative
// axis counts from behind; no axes mean all of them.
//
// ```cpp
// auto loss = df::reduce_mean(errors);                                 // a scalar
// auto rows = df::reduce_sum(x, 1);
// auto sums = df::reduce_sum(x, {0, -1}, {.keep_dims = true});
// ```
// Errors: InvalidArgument if an axis is outside [-rank, rank) or named twice.

template <AllowedFor<Sum> T>
Output<T> reduce_sum(const Output<T>& x, const IndexList& axes = {}, ReduceAttrs attrs = {}, const At& at = {}) {
  return detail::reduce<Sum>(x, axes, attrs, at);
}
template <AllowedFor<Mean> T>
Output<T> reduce_mean(const Output<T>& x, const IndexList& axes = {}, ReduceAttrs attrs = {}, const At& at = {}) {
  return detail::reduce<Mean>(x, axes, attrs, at);
}
template <AllowedFor<Prod> T>
Output<T> reduce_prod(const Output<T>& x, const IndexList& axes = {}, ReduceAttrs attrs = {}, const At& at = {}) {
  return detail::reduce<Prod>(x, axes, attrs, at);
}
/// If an element is NaN, the result is NaN.
template <AllowedFor<Max> T>
Output<T> reduce_max(const Output<T>& x, const IndexList& axes = {}, ReduceAttrs attrs = {}, const At& at = {}) {
  return detail::reduce<Max>(x, axes, attrs, at);
}
template <AllowedFor<Min> T>
Output<T> reduce_min(const Output<T>& x, const IndexList& axes = {}, ReduceAttrs attrs = {}, const At& at = {}) {
  return detail::reduce<Min>(x, axes, attrs, at);
}
template <AllowedFor<All> T>
Output<T> reduce_all(const Output<T>& x, const IndexList& axes = {}, ReduceAttrs attrs = {}, const At& at = {}) {
  return detail::reduce<All>(x, axes, attrs, at);
}
template <AllowedFor<Any> T>
Output<T> reduce_any(const Output<T>& x, const IndexList& axes = {}, ReduceAttrs attrs = {}, const At& at = {}) {
  return detail::reduce<Any>(x, axes, attrs, at);
}

/// x: [d0, ..., dn] gives positions along dimension `axis`, without this dimension. The first of several equal elements
/// counts. The default axis is the first dimension, as in TensorFlow.
///
/// Errors: InvalidArgument if axis is outside [-rank, rank); in the step, if the dimension is 0 and the result is not
/// empty.
template <AllowedFor<ArgMax> T>
Output<std::int64_t> argmax(const Output<T>& x, std::int32_t axis = 0, const At& at = {}) {
  return apply<ArgMax>(x, Output<std::int32_t>::unchecked(detail::arg_operand(x, axis, ArgMax::name, at)), {}, at);
}
template <AllowedFor<ArgMin> T>
Output<std::int64_t> argmin(const Output<T>& x, std::int32_t axis = 0, const At& at = {}) {
  return apply<ArgMin>(x, Output<std::int32_t>::unchecked(detail::arg_operand(x, axis, ArgMin::name, at)), {}, at);
}

}  // namespace dflow
