#include <dflow/kernels/cpu/array_like.hpp>
#include <dflow/kernels/cpu/array_shape.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(ZerosLike, Cpu);
DFLOW_INSTANTIATE_KERNEL(OnesLike, Cpu);
DFLOW_INSTANTIATE_KERNEL(Identity, Cpu);
DFLOW_INSTANTIATE_KERNEL(StopGradient, Cpu);
DFLOW_INSTANTIATE_KERNEL(ShapeOf, Cpu);
DFLOW_INSTANTIATE_KERNEL(RankOf, Cpu);
DFLOW_INSTANTIATE_KERNEL(SizeOf, Cpu);

}  // namespace dflow
