#pragma once

#include <dflow/kernels/cpu/linalg/self_adjoint_eig.hpp>

#include <Eigen/Eigenvalues>

namespace dflow::cpu {

namespace detail {

template <class T>
EigFactors<T> self_adjoint_eig_of(const OwnMatrix<T>& matrix, bool with_vectors) {
  if (!OwnMatrix<T>(matrix.template triangularView<Eigen::Lower>()).allFinite()) return {};
  const Eigen::SelfAdjointEigenSolver<OwnMatrix<T>> factor(
      matrix, with_vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (factor.info() != Eigen::Success) return {};
  return {factor.eigenvalues(), with_vectors ? factor.eigenvectors() : OwnMatrix<T>(), true};
}

}  // namespace detail

EigFactors<double> self_adjoint_eig(const OwnMatrix<double>& matrix, bool with_vectors) {
  return detail::self_adjoint_eig_of(matrix, with_vectors);
}
EigFactors<std::complex<double>> self_adjoint_eig(const OwnMatrix<std::complex<double>>& matrix, bool with_vectors) {
  return detail::self_adjoint_eig_of(matrix, with_vectors);
}

}  // namespace dflow::cpu
