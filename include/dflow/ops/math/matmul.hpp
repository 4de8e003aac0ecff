#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// Matrix product: a [m, k], b [k, n] gives [m, n]. If its flag is set, an operand is transposed first.
struct MatMul : StandardOp<"MatMul", NumberTypes> {
  struct Attrs {
    bool transpose_a = false;
    bool transpose_b = false;
  };
  using Inputs = In<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
/// [m, n] of the product of inputs 0 and 1; checks their ranks and inner dimensions.
PartialShape infer_product(const InferContext& context, bool transpose_a, bool transpose_b);
}  // namespace detail

/// a [m, k] times b [k, n]: [m, n].
///
/// Errors: InvalidArgument unless both are matrices and their inner dimensions agree.
template <class A, class B>
  requires Accepts<MatMul, A, B>
Output<ElementFor<MatMul, A, B>> matmul(const A& a, const B& b, MatMul::Attrs attrs = {}, const At& at = {}) {
  return apply<MatMul>(a, b, attrs, at);
}

}  // namespace dflow
