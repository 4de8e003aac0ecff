#include <dflow/kernels/cpu/random.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(RandomUniform, Cpu);
DFLOW_INSTANTIATE_KERNEL(RandomUniformInt, Cpu);
DFLOW_INSTANTIATE_KERNEL(RandomStandardNormal, Cpu);
DFLOW_INSTANTIATE_KERNEL(TruncatedNormal, Cpu);

}  // namespace dflow
