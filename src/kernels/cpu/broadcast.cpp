#include <dflow/kernels/cpu/broadcast.ipp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(BroadcastTo, Cpu);
DFLOW_INSTANTIATE_KERNEL(SumToShape, Cpu);

}  // namespace dflow
