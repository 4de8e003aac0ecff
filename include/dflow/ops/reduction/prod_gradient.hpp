#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// For each element the product of all others along axes: the derivative of Prod, correct also if elements are 0.
struct ExclusiveProd : StandardOp<"ExclusiveProd", concat_t<FloatTypes, ComplexTypes>> {
  using Inputs = In<T, std::int32_t>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of ExclusiveProd(x): element j is the sum over i != j of dy_i times the product of all x but x_i and
/// x_j, along axes. Inputs: x, axes, dy.
struct ExclusiveProdGrad : StandardOp<"ExclusiveProdGrad", concat_t<FloatTypes, ComplexTypes>> {
  using Inputs = In<T, std::int32_t, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

}  // namespace dflow
