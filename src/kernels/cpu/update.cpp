#include <dflow/kernels/cpu/update.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(ApplyGradientDescent, Cpu);
DFLOW_INSTANTIATE_KERNEL(ApplyMomentum, Cpu);
DFLOW_INSTANTIATE_KERNEL(ApplyAdam, Cpu);
DFLOW_INSTANTIATE_KERNEL(SparseApplyGradientDescent, Cpu);
DFLOW_INSTANTIATE_KERNEL(SparseApplyMomentum, Cpu);
DFLOW_INSTANTIATE_KERNEL(SparseApplyAdam, Cpu);

}  // namespace dflow
