#pragma once

/// Linear algebra by Eigen.

// Each of Eigen's templates is instantiated in one unit of this folder.
#if !defined(DFLOW_LINALG_UNITS)
#define DFLOW_LINALG_UNITS
#endif

#include <dflow/kernels/cpu/linalg/cholesky.hpp>
#include <dflow/kernels/cpu/linalg/solve.hpp>

namespace dflow {

template struct Kernel<Cholesky, Cpu, std::complex<float>>;
template struct Kernel<MatrixInverse, Cpu, std::complex<float>>;
template struct Kernel<MatrixDeterminant, Cpu, std::complex<float>>;
template struct Kernel<MatrixSolve, Cpu, std::complex<float>>;
template struct Kernel<MatrixTriangularSolve, Cpu, std::complex<float>>;

}  // namespace dflow
