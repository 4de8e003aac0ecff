#include <dflow/kernels/cpu/elementwise.hpp>
#include <dflow/kernels/library_kernel.hpp>
#include <dflow/ops/nn/losses.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(SigmoidCrossEntropyWithLogits, Cpu);

}  // namespace dflow
