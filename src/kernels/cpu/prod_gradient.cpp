#include <dflow/kernels/cpu/prod_gradient.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(ExclusiveProd, Cpu);
DFLOW_INSTANTIATE_KERNEL(ExclusiveProdGrad, Cpu);

}  // namespace dflow
