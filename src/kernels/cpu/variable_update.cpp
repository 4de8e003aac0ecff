#include <dflow/kernels/cpu/variable.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(AssignAdd, Cpu);
DFLOW_INSTANTIATE_KERNEL(AssignSub, Cpu);

}  // namespace dflow
