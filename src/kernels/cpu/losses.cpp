#include <dflow/kernels/cpu/losses.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(SoftmaxCrossEntropyWithLogits, Cpu);
DFLOW_INSTANTIATE_KERNEL(SparseSoftmaxCrossEntropyWithLogits, Cpu);
DFLOW_INSTANTIATE_KERNEL(L2Loss, Cpu);

}  // namespace dflow
