#include <dflow/kernels/cpu/pool2d.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(AvgPool, Cpu);
DFLOW_INSTANTIATE_KERNEL(AvgPoolGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(MaxPool, Cpu);
DFLOW_INSTANTIATE_KERNEL(MaxPoolGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(MaxPoolGradGrad, Cpu);

}  // namespace dflow
