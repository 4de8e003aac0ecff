#include <dflow/kernels/cpu/no_op.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(NoOp, Cpu);

}  // namespace dflow
