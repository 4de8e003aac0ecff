#include <dflow/kernels/cpu/linalg/solve_ls.hpp>

namespace dflow {

template struct Kernel<MatrixSolveLs, Cpu, double>;

}  // namespace dflow
