#include <dflow/kernels/cpu/variable.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(ScatterAdd, Cpu);
DFLOW_INSTANTIATE_KERNEL(ScatterSub, Cpu);

}  // namespace dflow
