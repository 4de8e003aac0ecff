#include <dflow/kernels/cpu/matmul.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(MatMul, Cpu);

}  // namespace dflow
