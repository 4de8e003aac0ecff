#include <dflow/kernels/cpu/batch_norm.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(FusedBatchNorm, Cpu);
DFLOW_INSTANTIATE_KERNEL(FusedBatchNormGrad, Cpu);

}  // namespace dflow
