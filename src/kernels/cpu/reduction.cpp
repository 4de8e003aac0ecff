#include <dflow/kernels/cpu/reduction/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ReductionOps, Cpu);

}  // namespace dflow
