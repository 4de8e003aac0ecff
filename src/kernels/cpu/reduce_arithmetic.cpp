#include <dflow/kernels/cpu/reduce.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Sum, Cpu);
DFLOW_INSTANTIATE_KERNEL(Mean, Cpu);
DFLOW_INSTANTIATE_KERNEL(Prod, Cpu);
DFLOW_INSTANTIATE_KERNEL(ReducedShape, Cpu);

}  // namespace dflow
