#include <dflow/kernels/cpu/nn/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(FusedOps, Cpu);

}  // namespace dflow
