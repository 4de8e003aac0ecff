#include <dflow/kernels/cpu/add_n.hpp>
#include <dflow/kernels/cpu/batch_matmul.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(AddN, Cpu);
DFLOW_INSTANTIATE_KERNEL(BatchMatMul, Cpu);

}  // namespace dflow
