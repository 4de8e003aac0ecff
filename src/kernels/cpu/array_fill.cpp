#include <dflow/kernels/cpu/array_fill.hpp>
#include <dflow/kernels/cpu/array_one_hot.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Fill, Cpu);
DFLOW_INSTANTIATE_KERNEL(Range, Cpu);
DFLOW_INSTANTIATE_KERNEL(OneHot, Cpu);

}  // namespace dflow
