#include <dflow/kernels/cpu/math/list.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ProductOps, Cpu);

}  // namespace dflow
