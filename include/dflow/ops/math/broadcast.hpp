#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// Repeats the input along dimensions of extent 1 and missing leading dimensions until it has the given shape.
struct BroadcastTo : StandardOp<"BroadcastTo", NumberTypes> {
  using Inputs = In<T, std::int32_t>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The reverse of BroadcastTo: sums the input over the dimensions along which a tensor of the given shape would be
/// repeated to get the shape of the input. Gradients of broadcasting ops end in this op.
struct SumToShape : StandardOp<"SumToShape", NumberTypes> {
  using Inputs = In<T, std::int32_t>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x repeated by NumPy's broadcasting rule to `shape`, a vector of extents.
///
/// Errors: InvalidArgument if x does not broadcast to `shape`; in the step, if the shape is known only there.
template <class A, class B>
  requires Accepts<BroadcastTo, A, B>
Output<ElementFor<BroadcastTo, A, B>> broadcast_to(const A& x, const B& shape, const At& at = {}) {
  return apply<BroadcastTo>(x, shape, {}, at);
}

/// x summed to `shape`, a vector of extents that broadcasts to the shape of x.
///
/// Errors: InvalidArgument if it does not; in the step, if the shape is known only there.
template <class A, class B>
  requires Accepts<SumToShape, A, B>
Output<ElementFor<SumToShape, A, B>> sum_to_shape(const A& x, const B& shape, const At& at = {}) {
  return apply<SumToShape>(x, shape, {}, at);
}

}  // namespace dflow
