#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/sparse_output.hpp>

namespace dflow {

/// The element types of products with sparse matrices.
using SparseProductTypes = concat_t<FloatTypes, IndexTypes, ComplexTypes>;

/// The product of a sparse matrix and a dense one: a_indices [n, 2], a_values [n], a_shape [2], b. If its flag is set,
/// an operand is transposed and conjugated first.
struct SparseTensorDenseMatMul : StandardOp<"SparseTensorDenseMatMul", SparseProductTypes> {
  struct Attrs {
    bool adjoint_a = false;
    bool adjoint_b = false;
  };
  using Inputs = In<std::int64_t, T, std::int64_t, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// a [m, k], sparse, times b [k, n], dense: [m, n]. Indices may be in any order and repeat: equal ones are added. Each
/// element of the product is the sum of its terms in the order of the values; 16-bit floats are added in float and
/// rounded once. The gradient goes to the values of a and to b.
///
/// ```cpp
/// auto y = df::sparse_tensor_dense_matmul(bags_of_words, weights);   // a linear model of sparse rows
/// ```
/// Errors: InvalidArgument unless both are matrices whose inner dimensions agree; in the step, naming position and
/// shape, for an index outside of the dense shape.
template <class T, class B>
  requires Accepts<SparseTensorDenseMatMul, Output<std::int64_t>, Output<T>, Output<std::int64_t>, B>
Output<T> sparse_tensor_dense_matmul(const SparseOutput<T>& a, const B& b, SparseTensorDenseMatMul::Attrs attrs = {},
                                     const At& at = {}) {
  return apply<SparseTensorDenseMatMul>(a.indices, a.values, a.dense_shape, b, attrs, at);
}

}  // namespace dflow
