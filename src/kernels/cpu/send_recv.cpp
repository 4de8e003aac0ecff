#include <dflow/kernels/cpu/send_recv/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(SendRecvOps, Cpu);

}  // namespace dflow
