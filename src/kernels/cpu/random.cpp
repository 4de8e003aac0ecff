#include <dflow/kernels/cpu/random/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(RandomOps, Cpu);

}  // namespace dflow
