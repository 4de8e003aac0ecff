#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/math/elementwise_op.hpp>

#include <cstdint>

namespace dflow {

/// What the elements along an axis are combined to, one after the other.
struct ScanAttrs {
  bool exclusive = false;  ///< an output has the elements before it, and not its own
  bool reverse = false;    ///< from the last element to the first
};

namespace detail {
/// The output has the shape of input 0; the last input is one of its axes.
void infer_scan(InferContext& context);
}  // namespace detail

/// The base of Cumsum and Cumprod.
template <FixedString Name>
struct CumulativeOp : StandardOp<Name, NumberTypes, IndexTypes> {
  using Attrs = ScanAttrs;
  using Inputs = In<TypeParam<0>, TypeParam<1>>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tidx"};
  static void infer(InferContext& context) { detail::infer_scan(context); }
};

/// The sums of the elements up to each one along an axis.
struct Cumsum : CumulativeOp<"Cumsum"> {
  static void gradient(GradientContext& context);
};
/// The products of the elements up to each one along an axis.
struct Cumprod : CumulativeOp<"Cumprod"> {
  static void gradient(GradientContext& context);
};

/// y_0 = initial, y_{i+1} = a_i y_i + b_i along an axis; in reverse from the last element to the first. A factor of 0
/// starts anew, even after an infinity. Inputs: a, b, axis. The gradients of products are such sums of products, and
/// those of this op too, so they divide by nothing and have all orders.
struct LinearScan : StandardOp<"LinearScan", FloatOrComplexTypes, IndexTypes> {
  struct Attrs {
    bool reverse = false;
    float initial = 0.0f;
  };
  using Inputs = In<T, T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tidx"};
  static void infer(InferContext& context) { detail::infer_scan(context); }
  static void gradient(GradientContext& context);
};

/// The sums of the elements of x up to each one along `axis`, in the shape of x. 16-bit floats are added in float, and
/// each sum is rounded once. A negative axis counts from behind.
///
/// ```cpp
/// df::cumsum(x, 0);                          // [1, 2, 3] gives [1, 3, 6]
/// df::cumsum(x, 0, {.exclusive = true});     // [0, 1, 3]
/// df::cumsum(x, 0, {.reverse = true});       // [6, 5, 3]
/// ```
/// Errors: InvalidArgument if x is a scalar, or axis is outside [-rank, rank).
template <class A, class B = std::int32_t>
  requires Accepts<Cumsum, A, B>
Output<ElementFor<Cumsum, A, B>> cumsum(const A& x, const B& axis = 0, ScanAttrs attrs = {}, const At& at = {}) {
  return apply<Cumsum>(x, axis, attrs, at);
}

/// The products of the elements of x up to each one along `axis`, as cumsum has the sums; the exclusive ones begin with
/// 1. The gradient is exact also where elements are 0: it divides by none, it adds products (LinearScan).
///
/// Errors: as cumsum.
template <class A, class B = std::int32_t>
  requires Accepts<Cumprod, A, B>
Output<ElementFor<Cumprod, A, B>> cumprod(const A& x, const B& axis = 0, ScanAttrs attrs = {}, const At& at = {}) {
  return apply<Cumprod>(x, axis, attrs, at);
}

}  // namespace dflow
