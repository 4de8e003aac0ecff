#pragma once

/// Linear algebra by Eigen.

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
