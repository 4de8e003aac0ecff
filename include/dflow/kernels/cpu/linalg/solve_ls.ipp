#pragma once

#include <dflow/kernels/cpu/linalg/solve_ls.hpp>

#include <Eigen/Cholesky>
#include <Eigen/QR>

namespace dflow::cpu {

namespace detail {

template <class T>
OwnMatrix<T> solve_ls_of(const OwnMatrix<T>& a, const OwnMatrix<T>& b, double threshold) {
  Eigen::CompleteOrthogonalDecomposition<OwnMatrix<T>> factor;
  factor.setThreshold(threshold);
  factor.compute(a);
  return factor.solve(b);
}

template <class T>
OwnMatrix<T> solve_normal_equations_of(const OwnMatrix<T>& a, const OwnMatrix<T>& b, double l2) {
  const bool is_wide = a.rows() < a.cols();
  OwnMatrix<T> gram = is_wide ? OwnMatrix<T>(a * a.adjoint()) : OwnMatrix<T>(a.adjoint() * a);
  gram.diagonal().array() += T(l2);
  const Eigen::LLT<OwnMatrix<T>> factor(gram);
  if (!is_positive_definite(factor)) return {};
  const OwnMatrix<T> solved = factor.solve(is_wide ? b : OwnMatrix<T>(a.adjoint() * b));
  return is_wide ? OwnMatrix<T>(a.adjoint() * solved) : solved;
}

}  // namespace detail

DFLOW_INLINE OwnMatrix<double> solve_ls(const OwnMatrix<double>& a, const OwnMatrix<double>& b, double threshold) {
  return detail::solve_ls_of(a, b, threshold);
}
DFLOW_INLINE OwnMatrix<std::complex<double>> solve_ls(const OwnMatrix<std::complex<double>>& a,
                                                      const OwnMatrix<std::complex<double>>& b, double threshold) {
  return detail::solve_ls_of(a, b, threshold);
}
DFLOW_INLINE OwnMatrix<double> solve_normal_equations(const OwnMatrix<double>& a, const OwnMatrix<double>& b,
                                                      double l2) {
  return detail::solve_normal_equations_of(a, b, l2);
}
DFLOW_INLINE OwnMatrix<std::complex<double>> solve_normal_equations(const OwnMatrix<std::complex<double>>& a,
                                                                    const OwnMatrix<std::complex<double>>& b,
                                                                    double l2) {
  return detail::solve_normal_equations_of(a, b, l2);
}

}  // namespace dflow::cpu
