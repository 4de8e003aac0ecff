#pragma once

#include <dflow/op/build.hpp>

#include <array>

namespace dflow {

/// Takes each element from `t` where the condition holds, else from `e`.
struct Select : StandardOp<"Select", AllTypes> {
  using Inputs = In<bool, T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
/// The inputs are condition, t and e. Its body is in ops/array/fill.ipp.
AnyOutput any_select(const std::array<AnyOutput, 3>& inputs, const At& at);
}  // namespace detail

/// condition ? t : e. t and e have one shape [n, ...]; a scalar beside a larger t or e stands for all its elements, and
/// two scalars for elements of the condition's shape. The condition has the same shape, or is a vector [n] that chooses
/// rows, or a scalar that chooses all.
///
/// ```cpp
/// auto positive = df::select(x > 0.0f, x, 0.0f);
/// ```
/// Errors: InvalidArgument for other shapes.
template <class C, class A, class B>
  requires Accepts<Select, C, A, B>
Output<ElementFor<Select, C, A, B>> select(const C& condition, const A& t, const B& e, const At& at = {}) {
  return Output<ElementFor<Select, C, A, B>>::unchecked(
      detail::any_select(detail::edges_for<Select>(at, condition, t, e), at));
}

}  // namespace dflow
