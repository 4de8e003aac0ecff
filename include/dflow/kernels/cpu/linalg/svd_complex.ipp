#pragma once

#include <dflow/kernels/cpu/linalg/svd.hpp>

#include <Eigen/Householder>

#include <algorithm>
#include <utility>
#include <vector>

namespace dflow::cpu {

/// Householder reflections from both sides leave a real matrix of two diagonals (Golub and Van Loan, Matrix
/// Computations, 5.4.8). Its decomposition is the real one.
SvdFactors<std::complex<double>> svd(const OwnMatrix<std::complex<double>>& matrix, SingularVectors vectors) {
  using Complex = std::complex<double>;
  if (matrix.rows() < matrix.cols()) {
    SvdFactors<Complex> result = svd(OwnMatrix<Complex>(matrix.adjoint()), vectors);
    std::swap(result.u, result.v);
    return result;
  }
  const Eigen::Index m = matrix.rows(), n = matrix.cols();
  // A modulus may be above the largest double.
  const double largest = std::max(matrix.real().cwiseAbs().maxCoeff(), matrix.imag().cwiseAbs().maxCoeff());
  const double scale = largest > 0 ? largest : 1;
  // Below the diagonal of `a` and `from_right` come the reflections' vectors without their first element, which is 1.
  OwnMatrix<Complex> a = matrix / scale, from_right(n, n);
  OwnMatrix<double> bidiagonal = OwnMatrix<double>::Zero(n, n);
  std::vector<Complex> left_tau(static_cast<std::size_t>(n)), right_tau(left_tau), work(static_cast<std::size_t>(m));
  for (Eigen::Index k = 0; k < n; ++k) {
    const auto at = static_cast<std::size_t>(k);
    a.col(k).tail(m - k).makeHouseholderInPlace(left_tau[at], bidiagonal(k, k));
    const Eigen::Index rest = n - k - 1;
    if (rest == 0) break;
    a.bottomRightCorner(m - k, rest).applyHouseholderOnTheLeft(a.col(k).tail(m - k - 1), left_tau[at], work.data());
    from_right.col(k).tail(rest) = a.row(k).tail(rest).adjoint();
    from_right.col(k).tail(rest).makeHouseholderInPlace(right_tau[at], bidiagonal(k, k + 1));
    a.bottomRightCorner(m - k - 1, rest)
        .applyHouseholderOnTheRight(from_right.col(k).tail(rest - 1), std::conj(right_tau[at]), work.data());
  }
  const SvdFactors<double> real = svd(bidiagonal, vectors == SingularVectors::none ? vectors : SingularVectors::full);
  SvdFactors<Complex> result{real.values * scale, {}, {}};
  if (vectors == SingularVectors::none) return result;
  result.u = OwnMatrix<Complex>::Identity(m, vectors == SingularVectors::full ? m : n);
  result.u.topLeftCorner(n, n) = real.u.cast<Complex>();
  result.v = real.v.cast<Complex>();
  work.resize(static_cast<std::size_t>(m));
  for (Eigen::Index k = n; k-- > 0;) {
    const auto at = static_cast<std::size_t>(k);
    result.u.bottomRows(m - k).applyHouseholderOnTheLeft(a.col(k).tail(m - k - 1), std::conj(left_tau[at]),
                                                         work.data());
    const Eigen::Index rest = n - k - 1;
    if (rest == 0) continue;
    result.v.bottomRows(rest).applyHouseholderOnTheLeft(from_right.col(k).tail(rest - 1), std::conj(right_tau[at]),
                                                        work.data());
  }
  return result;
}

}  // namespace dflow::cpu
