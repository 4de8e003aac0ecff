#include <dflow/kernels/cpu/linalg/solve.hpp>

namespace dflow {

template struct Kernel<MatrixInverse, Cpu, double>;
template struct Kernel<MatrixDeterminant, Cpu, double>;
template struct Kernel<MatrixSolve, Cpu, double>;
template struct Kernel<MatrixTriangularSolve, Cpu, double>;

}  // namespace dflow
