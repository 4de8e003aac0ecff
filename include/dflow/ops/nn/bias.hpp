#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/nn/window.hpp>

namespace dflow {

/// Adds a vector along the last dimension.
struct BiasAdd : StandardOp<"BiasAdd", NumberTypes> {
  struct Attrs {
    DataFormat data_format = DataFormat::nhwc;
  };
  using Inputs = In<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The gradient of BiasAdd with respect to the bias: the sum over all dimensions but the last.
struct BiasAddGrad : StandardOp<"BiasAddGrad", NumberTypes> {
  using Attrs = BiasAdd::Attrs;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x: [..., channels] of rank 2 or more, bias: [channels]; gives x + bias.
///
/// Errors: InvalidArgument if x has rank 0 or 1, bias has not rank 1, or the channels differ.
template <class A, class B>
  requires Accepts<BiasAdd, A, B>
Output<ElementFor<BiasAdd, A, B>> bias_add(const A& x, const B& bias, const At& at = {}) {
  return apply<BiasAdd>(x, bias, {}, at);
}

}  // namespace dflow
