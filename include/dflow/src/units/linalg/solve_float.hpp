#pragma once

/// Linear algebra by Eigen.

#include <dflow/kernels/cpu/linalg/cholesky.hpp>
#include <dflow/kernels/cpu/linalg/solve.hpp>

namespace dflow {

template struct Kernel<Cholesky, Cpu, float>;
template struct Kernel<MatrixInverse, Cpu, float>;
template struct Kernel<MatrixDeterminant, Cpu, float>;
template struct Kernel<MatrixSolve, Cpu, float>;
template struct Kernel<MatrixTriangularSolve, Cpu, float>;

}  // namespace dflow
