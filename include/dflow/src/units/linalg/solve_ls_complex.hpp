#pragma once

/// Linear algebra by Eigen.

// Each of Eigen's templates is instantiated in one unit of this folder.
#if !defined(DFLOW_LINALG_UNITS)
#define DFLOW_LINALG_UNITS
#endif

#include <dflow/kernels/cpu/linalg/solve_ls.ipp>

namespace dflow::cpu {

template OwnMatrix<std::complex<double>> solve_ls(const OwnMatrix<std::complex<double>>&,
                                                  const OwnMatrix<std::complex<double>>&, double);

}  // namespace dflow::cpu
