#include <dflow/kernels/cpu/check.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Assert, Cpu);
DFLOW_INSTANTIATE_KERNEL(CheckNumerics, Cpu);

}  // namespace dflow
