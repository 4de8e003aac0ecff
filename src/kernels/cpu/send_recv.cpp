#include <dflow/kernels/cpu/send_recv.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Send, Cpu);
DFLOW_INSTANTIATE_KERNEL(Recv, Cpu);

}  // namespace dflow
