#pragma once

#include <dflow/kernels/cpu/linalg/solve_ls.hpp>

#include <Eigen/QR>

namespace dflow::cpu {

template <class T>
OwnMatrix<T> solve_ls(const OwnMatrix<T>& a, const OwnMatrix<T>& b, double threshold) {
  Eigen::CompleteOrthogonalDecomposition<OwnMatrix<T>> factor;
  factor.setThreshold(threshold);
  factor.compute(a);
  return factor.solve(b);
}

}  // namespace dflow::cpu
