#include <dflow/kernels/cpu/elementwise_library.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Less, Cpu);
DFLOW_INSTANTIATE_KERNEL(LessEqual, Cpu);
DFLOW_INSTANTIATE_KERNEL(Greater, Cpu);
DFLOW_INSTANTIATE_KERNEL(GreaterEqual, Cpu);
DFLOW_INSTANTIATE_KERNEL(Equal, Cpu);
DFLOW_INSTANTIATE_KERNEL(NotEqual, Cpu);
DFLOW_INSTANTIATE_KERNEL(LogicalAnd, Cpu);
DFLOW_INSTANTIATE_KERNEL(LogicalOr, Cpu);
DFLOW_INSTANTIATE_KERNEL(LogicalNot, Cpu);

}  // namespace dflow
