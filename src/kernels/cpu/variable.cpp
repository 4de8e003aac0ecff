#include <dflow/kernels/cpu/variable.ipp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(VariableOp, Cpu);
DFLOW_INSTANTIATE_KERNEL(ReadVariable, Cpu);
DFLOW_INSTANTIATE_KERNEL(Assign, Cpu);
DFLOW_INSTANTIATE_KERNEL(IsVariableInitialized, Cpu);

}  // namespace dflow
