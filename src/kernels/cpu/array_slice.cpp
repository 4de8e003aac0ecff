#include <dflow/kernels/cpu/array_slice.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Slice, Cpu);
DFLOW_INSTANTIATE_KERNEL(Pad, Cpu);

}  // namespace dflow
