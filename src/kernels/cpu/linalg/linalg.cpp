#include <dflow/kernels/cpu/linalg/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(LinalgOps, Cpu);

}  // namespace dflow
