#include <dflow/kernels/cpu/array/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ArrayOps, Cpu);

}  // namespace dflow
