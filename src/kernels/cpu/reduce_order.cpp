#include <dflow/kernels/cpu/reduce.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Max, Cpu);
DFLOW_INSTANTIATE_KERNEL(Min, Cpu);
DFLOW_INSTANTIATE_KERNEL(All, Cpu);
DFLOW_INSTANTIATE_KERNEL(Any, Cpu);
DFLOW_INSTANTIATE_KERNEL(ArgMax, Cpu);
DFLOW_INSTANTIATE_KERNEL(ArgMin, Cpu);

}  // namespace dflow
