#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// Takes each element from `t` where the condition holds, else from `e`.
struct Select : StandardOp<"Select", AllTypes> {
  using Inputs = In<bool, T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// condition ? t : e. t and e have one shape [n, ...]. The condition has the same shape, or is a vector [n] that
/// chooses rows, or a scalar that chooses all.
///
/// Errors: InvalidArgument for other shapes.
template <AllowedFor<Select> T>
Output<T> select(const Output<bool>& condition, const Output<T>& t, const Output<T>& e, const At& at = {}) {
  return apply<Select>(condition, t, e, {}, at);
}

}  // namespace dflow
