#include <dflow/kernels/cpu/linalg/solve.hpp>

namespace dflow {

template struct Kernel<MatrixInverse, Cpu, std::complex<double>>;
template struct Kernel<MatrixDeterminant, Cpu, std::complex<double>>;
template struct Kernel<MatrixSolve, Cpu, std::complex<double>>;
template struct Kernel<MatrixTriangularSolve, Cpu, std::complex<double>>;

}  // namespace dflow
