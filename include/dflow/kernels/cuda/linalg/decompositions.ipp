#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/linalg/decompositions.hpp>
#include <dflow/kernels/cuda/linalg/matrix_work.ipp>
#include <dflow/kernels/cuda/routines/products.ipp>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace dflow::cuda {

namespace detail {

inline ProductOperand operation_of(DType dtype, bool is_adjoint) {
  if (!is_adjoint) return ProductOperand::plain;
  return is_complex(dtype) ? ProductOperand::adjoint : ProductOperand::transposed;
}

/// a, its matrices column by column, becomes L. Errors in the step: InvalidArgument with the message for a matrix that
/// is not positive definite.
inline void factor_cholesky(MatrixWork& work, AnyTensor& a, std::string_view message) {
  const std::int64_t count = a.dim(0), n = a.dim(1);
  const AnyTensor& info =
      work.run({.kind = SolverKind::cholesky, .dtype = a.dtype(), .n = n}, count,
               [&](SolverOperands& operands, std::int64_t i) { operands.a = element_of(a, i * n * n); });
  work.check_info(info, message);
  work.check_diagonals(a, count, n, true, message);
}

/// The pivots of factors, int64 [count, n], and where the first pivot of 0 is, int32 [count].
struct Pivots {
  const AnyTensor& rows;
  const AnyTensor& info;
};

/// a, its matrices column by column, becomes its factors.
inline Pivots factor(MatrixWork& work, AnyTensor& a) {
  const std::int64_t count = a.dim(0), n = a.dim(1);
  const AnyTensor& pivots = work.temporary(DType::int64, {count, n});
  const AnyTensor& info = work.run({.kind = SolverKind::lu, .dtype = a.dtype(), .m = n, .n = n}, count,
                                   [&](SolverOperands& operands, std::int64_t i) {
                                     operands.a = element_of(a, i * n * n);
                                     operands.pivots = static_cast<std::int64_t*>(element_of(pivots, i * n));
                                   });
  const SettlePivotsArgs args{count, n, static_cast<const std::int32_t*>(info.raw_data()),
                              static_cast<std::int64_t*>(element_of(pivots, 0))};
  work.launch(kernel_function<SettlePivotsBody>(), count * n, &args);
  return {pivots, info};
}

/// b [count, k, n] becomes op(a)^-1 b. Errors in the step: InvalidArgument for singular matrices.
inline void solve(MatrixWork& work, AnyTensor& a, AnyTensor& b, bool is_adjoint) {
  constexpr std::string_view message = "Input matrix is not invertible.";
  const std::int64_t count = a.dim(0), n = a.dim(1), k = b.dim(1);
  work.flag_matrices(a, {.only_nan = true}, message);  // which factors need not show
  const auto [pivots, info] = factor(work, a);
  work.check_info(info, message);
  work.check_diagonals(a, count, n, false, message);
  work.run(
      {.kind = SolverKind::lu_solve, .dtype = a.dtype(), .n = n, .k = k, .op = operation_of(a.dtype(), is_adjoint)},
      count, [&](SolverOperands& operands, std::int64_t i) {
        operands.a = element_of(a, i * n * n);
        operands.b = element_of(b, i * n * k);
        operands.pivots = static_cast<std::int64_t*>(element_of(pivots, i * n));
      });
}

/// values = x, of real elements, in the element type of `values`.
inline void set_values(MatrixWork& work, const LinalgFunctions& functions, const AnyTensor& x, AnyTensor& values) {
  if (functions.from_real == nullptr) return work.copy(x, values);
  const CastArgs args{values.num_elements(), x.raw_data(), values.raw_data()};
  work.launch(*functions.from_real, args.n, &args);
}

/// Singular values, descending [count, k], and which matrices were not finite, uint32 [count].
struct SingularValues {
  const AnyTensor& values;
  const AnyTensor& flags;
};

/// The singular values of x's matrices [m, n], which are not empty. If u and v are given, also the vectors, row by
/// row. If a matrix is not finite, its vectors are NaN, and its values are 0.
inline SingularValues find_singular_values(MatrixWork& work, const AnyTensor& x, AnyTensor* u, AnyTensor* v) {
  const MatrixSizes of(x.shape());
  const bool is_tall = of.rows >= of.columns;
  const std::int64_t m = std::max(of.rows, of.columns), n = std::min(of.rows, of.columns);
  const AnyTensor& flags = work.flag_matrices(x);
  // For a wide matrix the adjoint is used: its memory, row by row, conjugated.
  AnyTensor& a = is_tall ? work.by_columns(x) : work.temporary(x.dtype(), {of.count, n, m});
  if (!is_tall) work.conjugate(x, a);
  work.replace_flagged(flags, a, false);
  const AnyTensor& values = work.temporary(real_type(x.dtype()), {of.count, n});
  AnyTensor* const tall = is_tall ? u : v;
  AnyTensor* const wide = is_tall ? v : u;
  SolverCall call{.kind = SolverKind::svd, .dtype = x.dtype(), .m = m, .n = n};
  AnyTensor *left = nullptr, *right = nullptr;
  std::int64_t left_columns = 0;
  if (u != nullptr) {
    left_columns = MatrixSizes(tall->shape()).columns;
    call.wants_vectors = true;
    call.has_full_u = left_columns != n;
    left = &work.temporary(x.dtype(), {of.count, left_columns, m});
    right = &work.temporary(x.dtype(), {of.count, n, n});
  }
  const AnyTensor& info = work.run(call, of.count, [&](SolverOperands& operands, std::int64_t i) {
    operands.a = element_of(a, i * m * n);
    operands.values = element_of(values, i * n);
    if (left == nullptr) return;
    operands.u = element_of(*left, i * m * left_columns);
    operands.vh = element_of(*right, i * n * n);
  });
  constexpr std::string_view message = "Singular value decomposition was not successful.";
  work.check_info(info, message);
  work.check_values(values, message);
  if (left != nullptr) {
    work.copy_by_rows(*left, m, left_columns, *tall);
    work.conjugate(*right, *wide);  // the adjoint column by column is the conjugate row by row
    for (AnyTensor* const each : {u, v}) work.replace_flagged(flags, *each, true);
  }
  return {values, flags};
}

}  // namespace detail

void decompose_cholesky(KernelContext& context, const LinalgFunctions& functions) {
  AnyTensor& l = context.allocate_output(0, dflow::detail::inferred_shape(context));
  if (l.num_elements() == 0) return;
  detail::MatrixWork work(context, functions);
  AnyTensor& a = work.by_columns(context.input(0));
  const std::int64_t n = a.dim(1);
  detail::factor_cholesky(work, a, "Cholesky decomposition was not successful. The input might not be valid.");
  work.copy_by_rows(a, n, n, l);
  work.keep_triangle(l, true);
}

void find_determinants(KernelContext& context, const LinalgFunctions& functions) {
  AnyTensor& y = context.allocate_output(0, dflow::detail::inferred_shape(context));
  if (y.num_elements() == 0) return;
  detail::MatrixWork work(context, functions);
  const detail::MatrixSizes of(context.input(0).shape());
  if (of.rows == 0) {
    const IdentityArgs ones{y.num_elements(), 1, 1, y.raw_data()};
    return work.launch(functions.identity, ones.n, &ones);
  }
  AnyTensor& a = work.by_columns(context.input(0));
  const AnyTensor& flags = work.flag_matrices(a, {.only_nan = true});
  const auto [pivots, info] = detail::factor(work, a);
  const DeterminantArgs args{of.count,
                             of.rows,
                             a.raw_data(),
                             static_cast<const std::int64_t*>(pivots.raw_data()),
                             static_cast<const std::int32_t*>(info.raw_data()),
                             y.raw_data()};
  work.launch(functions.determinant, args.count, &args);
  work.replace_flagged(flags, y, true);
}

void invert_matrices(KernelContext& context, const LinalgFunctions& functions, bool is_adjoint) {
  AnyTensor& y = context.allocate_output(0, dflow::detail::inferred_shape(context));
  if (y.num_elements() == 0) return;
  detail::MatrixWork work(context, functions);
  AnyTensor& a = work.by_columns(context.input(0));
  AnyTensor& b = work.temporary(a.dtype(), a.shape());
  work.fill_identity(b);
  detail::solve(work, a, b, is_adjoint);
  work.copy_by_rows(b, a.dim(1), a.dim(1), y);
}

void solve_matrices(KernelContext& context, const LinalgFunctions& functions, bool is_adjoint) {
  AnyTensor& x = context.allocate_output(0, dflow::detail::inferred_shape(context));
  if (x.num_elements() == 0) return;
  detail::MatrixWork work(context, functions);
  AnyTensor& a = work.by_columns(context.input(0));
  AnyTensor& b = work.by_columns(context.input(1));
  detail::solve(work, a, b, is_adjoint);
  work.copy_by_rows(b, b.dim(2), b.dim(1), x);
}

void solve_triangles(KernelContext& context, const LinalgFunctions& functions,
                     const MatrixTriangularSolve::Attrs& attrs) {
  AnyTensor& x = context.allocate_output(0, dflow::detail::inferred_shape(context));
  if (x.num_elements() == 0) return;
  detail::MatrixWork work(context, functions);
  const AnyTensor& a = work.by_columns(context.input(0));
  AnyTensor& b = work.by_columns(context.input(1));
  const std::int64_t count = a.dim(0), n = a.dim(1), k = b.dim(1);
  work.check_diagonals(a, count, n, false, "Input matrix is not invertible.");
  work.run({.kind = SolverKind::triangular_solve,
            .dtype = a.dtype(),
            .n = n,
            .k = k,
            .op = detail::operation_of(a.dtype(), attrs.adjoint),
            .is_lower = attrs.lower},
           count, [&](SolverOperands& operands, std::int64_t i) {
             operands.a = detail::element_of(a, i * n * n);
             operands.b = detail::element_of(b, i * n * k);
           });
  work.copy_by_rows(b, n, k, x);
}

void decompose_qr(KernelContext& context, const LinalgFunctions& functions) {
  dflow::allocate_inferred_outputs(context);
  AnyTensor &q = context.output(0), &r = context.output(1);
  const detail::MatrixSizes of(context.input(0).shape());
  if (q.num_elements() + r.num_elements() == 0) return;
  detail::MatrixWork work(context, functions);
  if (of.are_empty()) return work.fill_identity(q);
  const std::int64_t m = of.rows, n = of.columns, k = std::min(m, n), columns = detail::MatrixSizes(q.shape()).columns;
  const AnyTensor& a = work.by_columns(context.input(0));
  const AnyTensor& tau = work.temporary(a.dtype(), {of.count, k});
  const auto reflections = [&](SolverOperands& operands, std::int64_t i) {
    operands.tau = detail::element_of(tau, i * k);
  };
  work.run({.kind = SolverKind::qr, .dtype = a.dtype(), .m = m, .n = n}, of.count,
           [&](SolverOperands& operands, std::int64_t i) {
             operands.a = detail::element_of(a, i * m * n);
             reflections(operands, i);
           });
  work.copy_by_rows(a, m, n, r);
  work.keep_triangle(r, false);
  // The reflections' vectors are in the first k columns.
  AnyTensor& vectors = work.cleared(a.dtype(), {of.count, columns, m});
  copy_strided(context, {of.count, k * m}, {&a, 0, {m * n, 1}}, {&vectors, 0, {columns * m, 1}}, work.temporaries());
  work.run({.kind = SolverKind::qr_vectors, .dtype = a.dtype(), .m = m, .n = columns, .k = k}, of.count,
           [&](SolverOperands& operands, std::int64_t i) {
             operands.a = detail::element_of(vectors, i * m * columns);
             reflections(operands, i);
           });
  work.copy_by_rows(vectors, m, columns, q);
}

void decompose_self_adjoint(KernelContext& context, const LinalgFunctions& functions, bool wants_vectors) {
  dflow::allocate_inferred_outputs(context);
  AnyTensor &e = context.output(0), &v = context.output(1);
  if (e.num_elements() == 0) return;
  constexpr std::string_view message =
      "Self-adjoint eigen decomposition was not successful. The input might not be valid.";
  detail::MatrixWork work(context, functions);
  const AnyTensor& flags = work.flag_matrices(context.input(0), {.is_lower = true}, message);
  AnyTensor& a = work.by_columns(context.input(0));
  const std::int64_t count = a.dim(0), n = a.dim(1);
  work.replace_flagged(flags, a, false);
  const AnyTensor& values = work.temporary(detail::real_type(a.dtype()), {count, n});
  const AnyTensor& info =
      work.run({.kind = SolverKind::eigen, .dtype = a.dtype(), .n = n, .wants_vectors = wants_vectors}, count,
               [&](SolverOperands& operands, std::int64_t i) {
                 operands.a = detail::element_of(a, i * n * n);
                 operands.values = detail::element_of(values, i * n);
               });
  work.check_info(info, message);
  work.check_values(values, message);
  detail::set_values(work, functions, values, e);
  if (wants_vectors) work.copy_by_rows(a, n, n, v);
}

void decompose_svd(KernelContext& context, const LinalgFunctions& functions, const Svd::Attrs& attrs) {
  dflow::allocate_inferred_outputs(context);
  AnyTensor &s = context.output(0), &u = context.output(1), &v = context.output(2);
  const AnyTensor& x = context.input(0);
  if (s.num_elements() + u.num_elements() + v.num_elements() == 0) return;
  detail::MatrixWork work(context, functions);
  if (detail::MatrixSizes(x.shape()).are_empty()) {
    for (AnyTensor* const each : {&u, &v}) {
      if (attrs.compute_uv) work.fill_identity(*each);
    }
    return;
  }
  const auto [values, flags] =
      detail::find_singular_values(work, x, attrs.compute_uv ? &u : nullptr, attrs.compute_uv ? &v : nullptr);
  detail::set_values(work, functions, values, s);
  work.replace_flagged(flags, s, true);
}

namespace detail {

/// Least squares of matrices that are not empty, in double: x [count, n, k] from a [count, m, n] and b [count, m, k],
/// all row by row.
class LeastSquares {
 public:
  LeastSquares(MatrixWork& work, const LeastSquaresFunctions& functions, const AnyTensor& a, const AnyTensor& b)
      : work_(work),
        functions_(functions),
        a_(a),
        b_(b),
        count_(MatrixSizes(a.shape()).count),
        m_(MatrixSizes(a.shape()).rows),
        n_(MatrixSizes(a.shape()).columns),
        k_(MatrixSizes(b.shape()).columns),
        dtype_(a.dtype()),
        adjoint_(operation_of(dtype_, true)) {}

  /// By the normal equations with l2 added to their diagonal.
  void solve_fast(double l2, AnyTensor& x) {
    const bool is_wide = m_ < n_;
    const std::int64_t least = std::min(m_, n_), inner = std::max(m_, n_);
    const AnyTensor& gram = work_.temporary(dtype_, {count_, least, least});
    multiply(a_, a_, gram,
             {.m = least,
              .n = least,
              .k = inner,
              .a = is_wide ? ProductOperand::plain : adjoint_,
              .b = is_wide ? adjoint_ : ProductOperand::plain});
    AnyTensor& factor = work_.by_columns(gram);
    add_to_diagonals(factor, least, l2);
    const AnyTensor* right = &b_;
    if (!is_wide) {
      const AnyTensor& product = work_.temporary(dtype_, {count_, n_, k_});
      multiply(a_, b_, product, {.m = n_, .n = k_, .k = m_, .a = adjoint_});
      right = &product;
    }
    AnyTensor& solved = work_.by_columns(*right);
    factor_cholesky(work_, factor,
                    "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
                    "l2_regularizer > 0.");
    work_.run({.kind = SolverKind::cholesky_solve, .dtype = dtype_, .n = least, .k = k_}, count_,
              [&](SolverOperands& operands, std::int64_t i) {
                operands.a = element_of(factor, i * least * least);
                operands.b = element_of(solved, i * least * k_);
              });
    if (!is_wide) return work_.copy_by_rows(solved, n_, k_, x);
    AnyTensor& rows = work_.temporary(dtype_, {count_, m_, k_});
    work_.copy_by_rows(solved, m_, k_, rows);
    multiply(a_, rows, x, {.m = n_, .n = k_, .k = m_, .a = adjoint_});
  }

  /// By the singular values that are above `threshold` of the largest: the solution of least norm.
  void solve_by_values(double threshold, AnyTensor& x) {
    const std::int64_t least = std::min(m_, n_);
    AnyTensor& u = work_.temporary(dtype_, {count_, m_, least});
    AnyTensor& v = work_.temporary(dtype_, {count_, n_, least});
    const AnyTensor& values = find_singular_values(work_, a_, &u, &v).values;
    AnyTensor& w = work_.temporary(dtype_, {count_, least, k_});
    multiply(u, b_, w, {.m = least, .n = k_, .k = m_, .a = adjoint_});
    DivideRowsArgs args;
    args.n = w.num_elements();
    args.rows = least;
    args.columns = k_;
    args.threshold = threshold;
    args.values = static_cast<const double*>(values.raw_data());
    args.w = w.raw_data();
    work_.launch(functions_.divide_rows, args.n, &args);
    multiply(v, w, x, {.m = n_, .n = k_, .k = least});
  }

 private:
  void multiply(const AnyTensor& a, const AnyTensor& b, const AnyTensor& y, RowProduct product) {
    product.batch = count_;
    run_library_product(work_.context(), product,
                        {dtype_, dtype_, a.raw_data(), b.raw_data(), const_cast<void*>(y.raw_data())},
                        work_.temporaries());
  }

  void add_to_diagonals(AnyTensor& a, std::int64_t n, double summand) {
    const AddDiagonalArgs args{count_, n, summand, a.raw_data()};
    work_.launch(functions_.add_diagonal, count_ * n, &args);
  }

  MatrixWork& work_;
  const LeastSquaresFunctions& functions_;
  const AnyTensor &a_, &b_;
  const std::int64_t count_, m_, n_, k_;
  const DType dtype_;
  const ProductOperand adjoint_;
};

}  // namespace detail

void solve_least_squares(KernelContext& context, const LeastSquaresFunctions& functions, bool is_fast) {
  AnyTensor& x = context.allocate_output(0, dflow::detail::inferred_shape(context));
  const double l2 = context.input<double>(2).scalar();
  if (!(l2 >= 0)) context.fail(str_cat("l2_regularizer must be 0 or more, got ", l2));
  if (x.num_elements() == 0) return;
  const detail::MatrixSizes of(context.input(0).shape());
  if (of.are_empty() || context.input(1).num_elements() == 0) return clear_output(context, x);
  detail::MatrixWork work(context, functions.wide);
  const auto widened = [&](const AnyTensor& given) -> const AnyTensor& {
    if (functions.widen == nullptr) return given;
    AnyTensor& wide = work.temporary(functions.wide_dtype, given.shape());
    const CastArgs args{given.num_elements(), given.raw_data(), wide.raw_data()};
    work.launch(*functions.widen, args.n, &args);
    return wide;
  };
  detail::LeastSquares squares(work, functions, widened(context.input(0)), widened(context.input(1)));
  AnyTensor& result = functions.narrow == nullptr ? x : work.temporary(functions.wide_dtype, x.shape());
  if (is_fast) {
    squares.solve_fast(l2, result);
  } else {
    squares.solve_by_values(functions.epsilon * static_cast<double>(std::min(of.rows, of.columns)), result);
  }
  if (functions.narrow == nullptr) return;
  const CastArgs args{x.num_elements(), result.raw_data(), x.raw_data()};
  work.launch(*functions.narrow, args.n, &args);
}

}  // namespace dflow::cuda
