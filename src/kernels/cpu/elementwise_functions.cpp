#include <dflow/kernels/cpu/elementwise.hpp>
#include <dflow/kernels/library_kernel.hpp>
#include <dflow/ops/math/special.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/math/unary_gradients.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Exp, Cpu);
DFLOW_INSTANTIATE_KERNEL(Log, Cpu);
DFLOW_INSTANTIATE_KERNEL(Log1p, Cpu);
DFLOW_INSTANTIATE_KERNEL(Tanh, Cpu);
DFLOW_INSTANTIATE_KERNEL(TanhGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(Sigmoid, Cpu);
DFLOW_INSTANTIATE_KERNEL(SigmoidGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(Sin, Cpu);
DFLOW_INSTANTIATE_KERNEL(Cos, Cpu);
DFLOW_INSTANTIATE_KERNEL(Lgamma, Cpu);
DFLOW_INSTANTIATE_KERNEL(Digamma, Cpu);
DFLOW_INSTANTIATE_KERNEL(DigammaGrad, Cpu);
DFLOW_INSTANTIATE_KERNEL(Erf, Cpu);
DFLOW_INSTANTIATE_KERNEL(Erfc, Cpu);
DFLOW_INSTANTIATE_KERNEL(Igamma, Cpu);
DFLOW_INSTANTIATE_KERNEL(Igammac, Cpu);

}  // namespace dflow
