#include <dflow/kernels/cpu/select.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Select, Cpu);

}  // namespace dflow
