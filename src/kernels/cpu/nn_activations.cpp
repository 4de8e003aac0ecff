#include <dflow/kernels/cpu/nn/list.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ActivationOps, Cpu);

}  // namespace dflow
