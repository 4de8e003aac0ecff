#include <dflow/kernels/cpu/bias.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(BiasAdd, Cpu);
DFLOW_INSTANTIATE_KERNEL(BiasAddGrad, Cpu);

}  // namespace dflow
