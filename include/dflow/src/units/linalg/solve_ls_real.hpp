#pragma once

/// Linear algebra by Eigen.

#include <dflow/kernels/cpu/linalg/solve_ls.ipp>

namespace dflow::cpu {

template OwnMatrix<double> solve_ls(const OwnMatrix<double>&, const OwnMatrix<double>&, double);

}  // namespace dflow::cpu
