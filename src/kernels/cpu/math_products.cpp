#include <dflow/kernels/cpu/math/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ProductOps, Cpu);

}  // namespace dflow
