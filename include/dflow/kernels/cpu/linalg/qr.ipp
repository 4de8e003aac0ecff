#pragma once

#include <dflow/kernels/cpu/linalg/qr.hpp>

#include <Eigen/QR>

namespace dflow::cpu {

namespace detail {

template <class T>
QrFactors<T> qr_of(const OwnMatrix<T>& matrix, std::int64_t k) {
  const Eigen::HouseholderQR<OwnMatrix<T>> factor(matrix);
  QrFactors<T> result{OwnMatrix<T>::Identity(matrix.rows(), k), OwnMatrix<T>::Zero(k, matrix.cols())};
  result.q.applyOnTheLeft(factor.householderQ());
  const std::int64_t rows = std::min(matrix.rows(), matrix.cols());
  result.r.topRows(rows) = factor.matrixQR().topRows(rows).template triangularView<Eigen::Upper>();
  return result;
}

}  // namespace detail

QrFactors<double> qr(const OwnMatrix<double>& matrix, std::int64_t k) { return detail::qr_of(matrix, k); }
QrFactors<std::complex<double>> qr(const OwnMatrix<std::complex<double>>& matrix, std::int64_t k) {
  return detail::qr_of(matrix, k);
}

}  // namespace dflow::cpu
