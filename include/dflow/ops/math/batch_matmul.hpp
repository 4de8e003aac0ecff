#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// Products of the matrices in two tensors of equal batch dimensions. If its flag is set, an operand is transposed
/// first; a complex operand is also conjugated.
struct BatchMatMul : StandardOp<"BatchMatMul", NumberTypes> {
  struct Attrs {
    bool adj_x = false;
    bool adj_y = false;
  };
  using Inputs = In<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x: [...batch, m, k], y: [...batch, k, n] gives [...batch, m, n].
///
/// Errors: InvalidArgument unless both have the same batch dimensions and the inner dimensions agree.
template <class A, class B>
  requires Accepts<BatchMatMul, A, B>
Output<ElementFor<BatchMatMul, A, B>> batch_matmul(const A& x, const B& y, BatchMatMul::Attrs attrs = {},
                                                   const At& at = {}) {
  return apply<BatchMatMul>(x, y, attrs, at);
}

}  // namespace dflow
