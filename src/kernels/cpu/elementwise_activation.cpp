#include <dflow/kernels/cpu/elementwise_library.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Relu, Cpu);
DFLOW_INSTANTIATE_KERNEL(ReluGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(Relu6, Cpu);
DFLOW_INSTANTIATE_KERNEL(Relu6Grad, Cpu);
DFLOW_INSTANTIATE_KERNEL(Elu, Cpu);
DFLOW_INSTANTIATE_KERNEL(EluGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(Softplus, Cpu);
DFLOW_INSTANTIATE_KERNEL(SoftplusGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(Softsign, Cpu);
DFLOW_INSTANTIATE_KERNEL(SoftsignGrad, Cpu);

}  // namespace dflow
