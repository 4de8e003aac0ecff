#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/linalg/element_types.hpp>

namespace dflow {

/// A^-1 of each square matrix of the input, or A^-H. The gradients of this op and of the ops below are from Giles
/// 2008, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
/// differentiation", section 2.
struct MatrixInverse : StandardOp<"MatrixInverse", LinalgTypes> {
  struct Attrs {
    bool adjoint = false;
  };
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The determinant of each square matrix of the input. Its gradient is an error in the step for a singular matrix.
struct MatrixDeterminant : StandardOp<"MatrixDeterminant", LinalgTypes> {
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// X with A X = B, or A^H X = B, by a factorisation with row pivots.
struct MatrixSolve : StandardOp<"MatrixSolve", LinalgTypes> {
  struct Attrs {
    bool adjoint = false;
  };
  using Inputs = In<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The same for a triangular A; only that triangle is read.
struct MatrixTriangularSolve : StandardOp<"MatrixTriangularSolve", LinalgTypes> {
  struct Attrs {
    bool lower = true;
    bool adjoint = false;
  };
  using Inputs = In<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// X that minimises |A X - B|^2 + l2_regularizer |X|^2; if there are several, the least one. With `fast`, the method
/// is the normal equations and a Cholesky factorisation. It asks for full rank (or a regularizer) and a condition
/// number below the root of the element type's resolution. Without `fast`, the method is a complete orthogonal
/// decomposition, which takes any matrix and no regularizer.
///
/// The gradient is by A and B, for matrices of full rank with numbers of rows and columns that are known when it is
/// built.
struct MatrixSolveLs : StandardOp<"MatrixSolveLs", LinalgTypes> {
  struct Attrs {
    bool fast = true;
  };
  using Inputs = In<T, T, double>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// a: [...batch, n, n] gives the same shape.
///
/// Errors: InvalidArgument unless the matrices are square; in the step if one is singular.
template <AllowedFor<MatrixInverse> T>
Output<T> matrix_inverse(const Output<T>& a, MatrixInverse::Attrs attrs = {}, const At& at = {}) {
  return apply<MatrixInverse>(a, attrs, at);
}

/// a: [...batch, n, n] gives [...batch]. The determinant of a matrix of no rows is 1.
///
/// Errors: InvalidArgument unless the matrices are square.
template <AllowedFor<MatrixDeterminant> T>
Output<T> matrix_determinant(const Output<T>& a, const At& at = {}) {
  return apply<MatrixDeterminant>(a, {}, at);
}

/// a: [...batch, n, n], b: [...batch, n, k] gives [...batch, n, k].
///
/// Errors: InvalidArgument unless the matrices are square, and b has their batch dimensions and as many rows; in the
/// step if one is singular.
template <class A, class B>
  requires Accepts<MatrixSolve, A, B>
Output<ElementFor<MatrixSolve, A, B>> matrix_solve(const A& a, const B& b, MatrixSolve::Attrs attrs = {},
                                                   const At& at = {}) {
  return apply<MatrixSolve>(a, b, attrs, at);
}

/// Shapes and errors: as matrix_solve. `attrs` says which triangle of `a` counts: the lower one by default.
template <class A, class B>
  requires Accepts<MatrixTriangularSolve, A, B>
Output<ElementFor<MatrixTriangularSolve, A, B>> matrix_triangular_solve(const A& a, const B& b,
                                                                        MatrixTriangularSolve::Attrs attrs = {},
                                                                        const At& at = {}) {
  return apply<MatrixTriangularSolve>(a, b, attrs, at);
}

/// a: [...batch, m, n], b: [...batch, m, k] gives [...batch, n, k].
///
/// Errors: InvalidArgument unless a and b have the same batch dimensions and rows; in the step if a matrix is too near
/// to one of lesser rank for `fast`.
template <class A, class B>
  requires Accepts<MatrixSolveLs, A, B, double>
Output<ElementFor<MatrixSolveLs, A, B, double>> matrix_solve_ls(const A& a, const B& b, double l2_regularizer = 0,
                                                                bool fast = true, const At& at = {}) {
  return apply<MatrixSolveLs>(a, b, l2_regularizer, {.fast = fast}, at);
}

}  // namespace dflow
