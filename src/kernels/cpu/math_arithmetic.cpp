#include <dflow/kernels/cpu/math/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(BinaryOps, Cpu);
DFLOW_INSTANTIATE_KERNELS(PowerOps, Cpu);
DFLOW_INSTANTIATE_KERNELS(ComparisonOps, Cpu);
DFLOW_INSTANTIATE_KERNELS(LogicalOps, Cpu);

}  // namespace dflow
