#include <dflow/kernels/cpu/array_reshape.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Reshape, Cpu);
DFLOW_INSTANTIATE_KERNEL(ExpandDims, Cpu);
DFLOW_INSTANTIATE_KERNEL(Squeeze, Cpu);

}  // namespace dflow
