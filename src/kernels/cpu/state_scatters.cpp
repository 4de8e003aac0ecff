#include <dflow/kernels/cpu/state/list.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ScatterOps, Cpu);

}  // namespace dflow
