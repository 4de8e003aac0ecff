#include <dflow/kernels/cpu/elementwise_library.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Add, Cpu);
DFLOW_INSTANTIATE_KERNEL(Sub, Cpu);
DFLOW_INSTANTIATE_KERNEL(Mul, Cpu);
DFLOW_INSTANTIATE_KERNEL(Div, Cpu);
DFLOW_INSTANTIATE_KERNEL(Mod, Cpu);
DFLOW_INSTANTIATE_KERNEL(Pow, Cpu);
DFLOW_INSTANTIATE_KERNEL(Maximum, Cpu);
DFLOW_INSTANTIATE_KERNEL(Minimum, Cpu);
DFLOW_INSTANTIATE_KERNEL(SquaredDifference, Cpu);

}  // namespace dflow
