#include <dflow/kernels/cpu/nn/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(NormalisationOps, Cpu);

}  // namespace dflow
