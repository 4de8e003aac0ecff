#include <dflow/kernels/cpu/cast.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Cast, Cpu);

}  // namespace dflow
