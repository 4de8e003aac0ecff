#include <dflow/kernels/cpu/softmax.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Softmax, Cpu);
DFLOW_INSTANTIATE_KERNEL(SoftmaxGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(LogSoftmax, Cpu);
DFLOW_INSTANTIATE_KERNEL(LogSoftmaxGrad, Cpu);

}  // namespace dflow
