#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>

#include <Eigen/Cholesky>

#include <complex>

namespace dflow::cpu {

/// The x that makes the norm of a * x - b least, by the normal equations with l2 added to their diagonal. If a has
/// fewer rows than columns, x has the least norm. Empty if the equations are not positive definite. Preconditions: not
/// empty, as many rows in b as in a.
template <class T>
OwnMatrix<T> solve_normal_equations(const OwnMatrix<T>& a, const OwnMatrix<T>& b, double l2) {
  const bool is_wide = a.rows() < a.cols();
  OwnMatrix<T> gram = is_wide ? OwnMatrix<T>(a * a.adjoint()) : OwnMatrix<T>(a.adjoint() * a);
  gram.diagonal().array() += T(l2);
  const Eigen::LLT<OwnMatrix<T>> factor(gram);
  if (!is_positive_definite(factor)) return {};
  const OwnMatrix<T> solved = factor.solve(is_wide ? b : OwnMatrix<T>(a.adjoint() * b));
  return is_wide ? OwnMatrix<T>(a.adjoint() * solved) : solved;
}

#if defined(DFLOW_LINALG_UNITS)
// In the unit of the type's solvers.
extern template OwnMatrix<double> solve_normal_equations(const OwnMatrix<double>&, const OwnMatrix<double>&, double);
extern template OwnMatrix<std::complex<double>> solve_normal_equations(const OwnMatrix<std::complex<double>>&,
                                                                       const OwnMatrix<std::complex<double>>&, double);
#endif

}  // namespace dflow::cpu
