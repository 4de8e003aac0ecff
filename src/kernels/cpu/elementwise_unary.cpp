#include <dflow/kernels/cpu/elementwise.hpp>
#include <dflow/kernels/library_kernel.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/math/unary_gradients.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Abs, Cpu);
DFLOW_INSTANTIATE_KERNEL(Neg, Cpu);
DFLOW_INSTANTIATE_KERNEL(Inv, Cpu);
DFLOW_INSTANTIATE_KERNEL(InvGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(Square, Cpu);
DFLOW_INSTANTIATE_KERNEL(Sqrt, Cpu);
DFLOW_INSTANTIATE_KERNEL(SqrtGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(Rsqrt, Cpu);
DFLOW_INSTANTIATE_KERNEL(RsqrtGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(Sign, Cpu);
DFLOW_INSTANTIATE_KERNEL(Floor, Cpu);
DFLOW_INSTANTIATE_KERNEL(Ceil, Cpu);
DFLOW_INSTANTIATE_KERNEL(Round, Cpu);
DFLOW_INSTANTIATE_KERNEL(IsNan, Cpu);
DFLOW_INSTANTIATE_KERNEL(IsInf, Cpu);
DFLOW_INSTANTIATE_KERNEL(IsFinite, Cpu);
DFLOW_INSTANTIATE_KERNEL(Conj, Cpu);

}  // namespace dflow
