#include "cuda/recorded_solver.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/Householder>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

#include <dflow/base/str_cat.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/ops/linalg/element_types.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

namespace dflow::testing {

using cuda::MemoryUse;
using cuda::ProductOperand;
using cuda::SolverCall;
using cuda::SolverKind;
using cuda::SolverOperands;

namespace {

/// Rows and columns of a call's a.
struct Extents {
  std::int64_t rows, columns;
};
Extents extents_of(const SolverCall& call) {
  const bool is_tall =
      call.kind == SolverKind::qr || call.kind == SolverKind::qr_vectors || call.kind == SolverKind::svd;
  return {is_tall ? call.m : call.n, call.n};
}

template <class T>
using WideOf = std::conditional_t<is_complex_element<T>, std::complex<double>, double>;

/// A call with elements of type T, computed in double.
template <class T>
class Recorded {
 public:
  using Wide = WideOf<T>;
  using Matrix = Eigen::Matrix<Wide, Eigen::Dynamic, Eigen::Dynamic>;
  using Vector = Eigen::Matrix<Wide, Eigen::Dynamic, 1>;
  using Real = typename Eigen::NumTraits<T>::Real;

  Recorded(const SolverCall& call, const SolverOperands& operands) : call_(call), of_(operands) {}

  void compute() {
    switch (call_.kind) {
      case SolverKind::cholesky:
        return cholesky();
      case SolverKind::cholesky_solve: {
        const Matrix l = a().template triangularView<Eigen::Lower>();
        const Matrix half = l.template triangularView<Eigen::Lower>().solve(b());
        return write_b(l.adjoint().template triangularView<Eigen::Upper>().solve(half));
      }
      case SolverKind::lu:
        return lu();
      case SolverKind::lu_solve:
        return lu_solve();
      case SolverKind::triangular_solve: {
        const Matrix all = a();
        const Matrix triangle = call_.is_lower ? Matrix(all.template triangularView<Eigen::Lower>())
                                               : Matrix(all.template triangularView<Eigen::Upper>());
        return write_b(solved(operated(triangle), b(), call_.is_lower == (call_.op == ProductOperand::plain), false));
      }
      case SolverKind::qr: {
        const Eigen::HouseholderQR<Matrix> factor(a());
        write(of_.a, factor.matrixQR());
        write(of_.tau, Vector(factor.hCoeffs().conjugate()));
        return set_info(0);
      }
      case SolverKind::qr_vectors: {
        const Matrix vectors = a().leftCols(call_.k);
        const Vector tau = read(of_.tau, call_.k, 1);
        Matrix q = Matrix::Identity(call_.m, call_.n);
        q.applyOnTheLeft(Eigen::HouseholderSequence<Matrix, Vector>(vectors, tau));
        write(of_.a, q);
        return set_info(0);
      }
      case SolverKind::eigen: {
        const Eigen::SelfAdjointEigenSolver<Matrix> factor(
            a(), call_.wants_vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
        write_values(factor.eigenvalues());
        write(of_.a, call_.wants_vectors ? Matrix(factor.eigenvectors()) : used_up());
        return set_info(factor.info() == Eigen::Success ? 0 : 1);
      }
      case SolverKind::svd:
        return svd();
    }
  }

 private:
  static Matrix read(const void* from, std::int64_t rows, std::int64_t columns) {
    Matrix matrix(rows, columns);
    for (std::int64_t i = 0; i < rows * columns; ++i) matrix.data()[i] = Wide(static_cast<const T*>(from)[i]);
    return matrix;
  }
  template <class M>
  static void write(void* to, const M& matrix) {
    const Matrix all = matrix;
    for (Eigen::Index i = 0; i < all.size(); ++i) static_cast<T*>(to)[i] = static_cast<T>(all.data()[i]);
  }
  Matrix a() const {
    const Extents of = extents_of(call_);
    return read(of_.a, of.rows, of.columns);
  }
  Matrix b() const { return read(of_.b, call_.n, call_.k); }
  template <class M>
  void write_b(const M& matrix) const {
    write(of_.b, matrix);
  }
  void write_values(const Eigen::VectorXd& values) const {
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      static_cast<Real*>(of_.values)[i] = static_cast<Real>(values[i]);
    }
  }
  void set_info(std::int32_t info) const { *of_.info = info; }
  Matrix used_up() const {
    const Extents of = extents_of(call_);
    return Matrix::Constant(of.rows, of.columns, Wide(std::nan("")));
  }

  Matrix operated(const Matrix& matrix) const {
    return call_.op == ProductOperand::plain        ? matrix
           : call_.op == ProductOperand::transposed ? Matrix(matrix.transpose())
                                                    : Matrix(matrix.adjoint());
  }
  static Matrix solved(const Matrix& triangle, const Matrix& right, bool is_lower, bool has_ones) {
    if (is_lower) {
      return has_ones ? Matrix(triangle.template triangularView<Eigen::UnitLower>().solve(right))
                      : Matrix(triangle.template triangularView<Eigen::Lower>().solve(right));
    }
    return has_ones ? Matrix(triangle.template triangularView<Eigen::UnitUpper>().solve(right))
                    : Matrix(triangle.template triangularView<Eigen::Upper>().solve(right));
  }

  void cholesky() const {
    Matrix all = a();
    const Eigen::LLT<Matrix, Eigen::Lower> factor(all);
    Matrix result = Matrix::Constant(call_.n, call_.n, Wide(std::nan("")));
    result.template triangularView<Eigen::Lower>() = factor.matrixLLT();
    write(of_.a, result);
    set_info(factor.info() == Eigen::Success ? 0 : 1);
  }

  void lu() const {
    Matrix all = a();
    const Eigen::Index n = call_.n;
    std::int32_t info = 0;
    for (Eigen::Index k = 0; k < n; ++k) {
      Eigen::Index row = k;
      for (Eigen::Index i = k + 1; i < n; ++i) {
        if (std::abs(all(i, k)) > std::abs(all(row, k))) row = i;
      }
      of_.pivots[k] = row + 1;
      all.row(k).swap(all.row(row));
      const Eigen::Index rest = n - k - 1;
      if (all(k, k) == Wide(0)) {
        // The library promises nothing of the columns that come after, nor of pivots.
        if (info == 0) info = static_cast<std::int32_t>(k + 1);
        all.col(k).tail(rest).setConstant(Wide(std::nan("")));
        for (Eigen::Index i = k; i < n; ++i) of_.pivots[i] = i % 2 == 0 ? -7 : std::int64_t{1} << 40;
        break;
      }
      all.col(k).tail(rest) /= all(k, k);
      all.bottomRightCorner(rest, rest) -= all.col(k).tail(rest) * all.row(k).tail(rest);
    }
    write(of_.a, all);
    set_info(info);
  }

  void lu_solve() const {
    const Matrix factors = a();
    Matrix x = b();
    if (call_.op == ProductOperand::plain) {
      for (Eigen::Index i = 0; i < call_.n; ++i) x.row(i).swap(x.row(of_.pivots[i] - 1));
      x = solved(factors, x, true, true);
      x = solved(factors, x, false, false);
    } else {
      const Matrix turned = operated(factors);
      x = solved(turned, x, true, false);
      x = solved(turned, x, false, true);
      for (Eigen::Index i = call_.n; i-- > 0;) x.row(i).swap(x.row(of_.pivots[i] - 1));
    }
    write_b(x);
  }

  void svd() const {
    const unsigned options = !call_.wants_vectors ? 0u
                             : call_.has_full_u   ? Eigen::ComputeFullU | Eigen::ComputeFullV
                                                  : Eigen::ComputeThinU | Eigen::ComputeFullV;
    const Eigen::JacobiSVD<Matrix> factor(a(), options);
    write_values(factor.singularValues());
    if (call_.wants_vectors) {
      write(of_.u, factor.matrixU());
      write(of_.vh, factor.matrixV().adjoint());
    }
    write(of_.a, used_up());
    set_info(0);
  }

  const SolverCall& call_;
  const SolverOperands& of_;
};

bool has_right_side(const SolverCall& call) {
  return call.kind == SolverKind::cholesky_solve || call.kind == SolverKind::lu_solve ||
         call.kind == SolverKind::triangular_solve;
}

}  // namespace

std::string what_is_wrong_with(const SolverCall& call) {
  if (!in_mask(call.dtype, dtype_mask<LinalgTypes>)) return str_cat("elements of type ", dtype_name(call.dtype));
  const Extents a = extents_of(call);
  if (a.rows < 1 || a.columns < 1) return "a matrix without elements";
  if (has_right_side(call) && call.k < 1) return "a right side without columns";
  if (call.kind == SolverKind::svd && call.m < call.n) return "singular values of a wide matrix";
  if (call.kind == SolverKind::qr_vectors && (call.n > call.m || call.k > call.n || call.k < 1)) {
    return "more columns than rows, or more reflections than columns";
  }
  if (call.op == ProductOperand::adjoint && !is_complex(call.dtype)) return "an adjoint of real numbers";
  return {};
}

std::size_t workspace_of(const SolverCall& call) {
  if (has_right_side(call)) return 0;
  const Extents a = extents_of(call);
  return static_cast<std::size_t>(a.rows + 3 * a.columns) * size_of(call.dtype);
}

std::vector<MemoryUse> memory_of(const SolverCall& call, const SolverOperands& of) {
  const Extents a = extents_of(call);
  const std::size_t element = size_of(call.dtype), real = is_complex(call.dtype) ? element / 2 : element;
  const auto bytes = [](std::int64_t elements, std::size_t each) { return static_cast<std::size_t>(elements) * each; };
  std::vector<MemoryUse> all{{of.a, bytes(a.rows * a.columns, element), !has_right_side(call)}};
  if (has_right_side(call)) all.push_back({of.b, bytes(call.n * call.k, element), true});
  if (call.kind == SolverKind::lu || call.kind == SolverKind::lu_solve) {
    all.push_back({of.pivots, bytes(call.n, sizeof(std::int64_t)), call.kind == SolverKind::lu});
  }
  if (call.kind == SolverKind::qr) all.push_back({of.tau, bytes(std::min(call.m, call.n), element), true});
  if (call.kind == SolverKind::qr_vectors) all.push_back({of.tau, bytes(call.k, element), false});
  if (call.kind == SolverKind::eigen || call.kind == SolverKind::svd) {
    all.push_back({of.values, bytes(call.n, real), true});
  }
  if (call.kind == SolverKind::svd && call.wants_vectors) {
    all.push_back({of.u, bytes(call.m * (call.has_full_u ? call.m : call.n), element), true});
    all.push_back({of.vh, bytes(call.n * call.n, element), true});
  }
  if (call.kind != SolverKind::triangular_solve) all.push_back({of.info, sizeof(std::int32_t), true});
  if (of.workspace_bytes != 0) all.push_back({of.workspace, of.workspace_bytes, true});
  return all;
}

void compute_solver(const SolverCall& call, const SolverOperands& operands) {
  if (operands.workspace_bytes != 0) std::memset(operands.workspace, 0xA5, operands.workspace_bytes);
  visit_dtype<LinalgTypes>(call.dtype, [&]<class T>() { return Recorded<T>(call, operands).compute(), 0; });
}

}  // namespace dflow::testing
