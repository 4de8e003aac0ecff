#include <dflow/kernels/cpu/conv2d.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Conv2D, Cpu);
DFLOW_INSTANTIATE_KERNEL(Conv2DBackpropInput, Cpu);
DFLOW_INSTANTIATE_KERNEL(Conv2DBackpropFilter, Cpu);

}  // namespace dflow
