#include <dflow/kernels/cpu/reduction/list.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ReductionOps, Cpu);

}  // namespace dflow
