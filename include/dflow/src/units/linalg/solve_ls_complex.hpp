#pragma once

/// Linear algebra by Eigen.

#include <dflow/kernels/cpu/linalg/solve_ls.ipp>

namespace dflow::cpu {

template OwnMatrix<std::complex<double>> solve_ls(const OwnMatrix<std::complex<double>>&,
                                                  const OwnMatrix<std::complex<double>>&, double);

}  // namespace dflow::cpu
