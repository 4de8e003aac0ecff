#pragma once

/// Linear algebra by Eigen.

// Each of Eigen's templates is instantiated in one unit of this folder.
#if !defined(DFLOW_LINALG_UNITS)
#define DFLOW_LINALG_UNITS
#endif

#include <dflow/kernels/cpu/linalg/cholesky.hpp>
#include <dflow/kernels/cpu/linalg/normal_equations.hpp>
#include <dflow/kernels/cpu/linalg/solve.hpp>

namespace dflow {

template struct Kernel<Cholesky, Cpu, double>;
template struct Kernel<MatrixInverse, Cpu, double>;
template struct Kernel<MatrixDeterminant, Cpu, double>;
template struct Kernel<MatrixSolve, Cpu, double>;
template struct Kernel<MatrixTriangularSolve, Cpu, double>;

template cpu::OwnMatrix<double> cpu::solve_normal_equations(const OwnMatrix<double>&, const OwnMatrix<double>&, double);

}  // namespace dflow
