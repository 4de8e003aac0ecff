#include <dflow/kernels/cpu/state/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ScatterOps, Cpu);

}  // namespace dflow
