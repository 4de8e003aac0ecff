#pragma once

#include <dflow/op/build.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/index_list.hpp>

namespace dflow {

/// Each matrix of the input, with zeros (false) outside a band. The band keeps `num_lower` diagonals below the main
/// diagonal and `num_upper` above it; a negative number keeps all.
struct MatrixBandPart : StandardOp<"MatrixBandPart", PlainTypes, IndexTypes> {
  using Inputs = In<T, U, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindex"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// Square matrices with the vectors of the input on their diagonals, and zeros (false) elsewhere.
struct MatrixDiag : StandardOp<"MatrixDiag", PlainTypes> {
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The main diagonal of each matrix of the input.
struct MatrixDiagPart : StandardOp<"MatrixDiagPart", PlainTypes> {
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// Each matrix of the first input with the vector of the second as its main diagonal.
struct MatrixSetDiag : StandardOp<"MatrixSetDiag", PlainTypes> {
  using Inputs = In<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
Expr any_band_part(const AnyOutput& x, std::int64_t num_lower, std::int64_t num_upper, const At& at = {});
AnyOutput any_diag(const AnyOutput& x, const At& at);
AnyOutput any_diag_part(const AnyOutput& x, const At& at);
}  // namespace detail

/// x: [...batch, m, n] gives the same shape. `matrix_band_part(x, -1, 0)` is the lower triangle.
///
/// Errors: InvalidArgument if x has a rank below 2, num_lower exceeds m or num_upper n.
template <AllowedFor<MatrixBandPart> T>
Output<T> matrix_band_part(const Output<T>& x, std::int64_t num_lower, std::int64_t num_upper, const At& at = {}) {
  return Output<T>::unchecked(detail::any_band_part(x, num_lower, num_upper, at));
}

/// diagonal: [...batch, n] gives [...batch, n, n].
///
/// Errors: InvalidArgument if the diagonal is a scalar.
template <AllowedFor<MatrixDiag> T>
Output<T> matrix_diag(const Output<T>& diagonal, const At& at = {}) {
  return apply<MatrixDiag>(diagonal, {}, at);
}

/// x: [...batch, m, n] gives [...batch, min(m, n)].
///
/// Errors: InvalidArgument if x has a rank below 2.
template <AllowedFor<MatrixDiagPart> T>
Output<T> matrix_diag_part(const Output<T>& x, const At& at = {}) {
  return apply<MatrixDiagPart>(x, {}, at);
}

/// x: [d1, ..., dk] gives [d1, ..., dk, d1, ..., dk], where element (i, i) is x(i), for i of k positions, and all
/// others are zeros (false). TensorFlow's Diag, as a MatrixDiag between reshapes. k is at most 4.
///
/// Errors: InvalidArgument if x has more than 4 dimensions.
template <AllowedFor<MatrixDiag> T>
Output<T> diag(const Output<T>& x, const At& at = {}) {
  return Output<T>::unchecked(detail::any_diag(x, at));
}

/// x: [d1, ..., dk, d1, ..., dk] gives its elements (i, i), [d1, ..., dk]. TensorFlow's DiagPart, as a MatrixDiagPart
/// between reshapes.
///
/// Errors: InvalidArgument if the rank of x is unknown or odd, or its two halves differ; in the step if these are known
/// only there.
template <AllowedFor<MatrixDiagPart> T>
Output<T> diag_part(const Output<T>& x, const At& at = {}) {
  return Output<T>::unchecked(detail::any_diag_part(x, at));
}

/// x: [...batch, m, n], diagonal: [...batch, min(m, n)] gives the shape of x.
///
/// Errors: InvalidArgument if x has a rank below 2, or the diagonal another shape.
template <class A, class B>
  requires Accepts<MatrixSetDiag, A, B>
Output<ElementFor<MatrixSetDiag, A, B>> matrix_set_diag(const A& x, const B& diagonal, const At& at = {}) {
  return apply<MatrixSetDiag>(x, diagonal, {}, at);
}

}  // namespace dflow
