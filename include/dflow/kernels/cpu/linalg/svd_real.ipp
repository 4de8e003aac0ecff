#pragma once

#include <dflow/kernels/cpu/linalg/svd.hpp>

#include <Eigen/SVD>

#if defined(DFLOW_LINALG_UNITS)
// The steps of the decomposition, in a unit of their own: together they take long to compile.
extern template class Eigen::JacobiSVD<dflow::cpu::OwnMatrix<double>>;
extern template Eigen::internal::UpperBidiagonalization<dflow::cpu::OwnMatrix<double>>&
Eigen::internal::UpperBidiagonalization<dflow::cpu::OwnMatrix<double>>::compute(const dflow::cpu::OwnMatrix<double>&);
#endif

namespace dflow::cpu {

SvdFactors<double> svd(const OwnMatrix<double>& matrix, SingularVectors vectors) {
  const unsigned options = vectors == SingularVectors::none   ? 0u
                           : vectors == SingularVectors::full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                                                              : Eigen::ComputeThinU | Eigen::ComputeThinV;
  const Eigen::BDCSVD<OwnMatrix<double>> factor(matrix, options);
  SvdFactors<double> result{factor.singularValues(), {}, {}};
  if (options != 0) {
    result.u = factor.matrixU();
    result.v = factor.matrixV();
  }
  return result;
}

}  // namespace dflow::cpu
