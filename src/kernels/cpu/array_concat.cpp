#include <dflow/kernels/cpu/array_concat.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Concat, Cpu);
DFLOW_INSTANTIATE_KERNEL(ConcatOffset, Cpu);
DFLOW_INSTANTIATE_KERNEL(Split, Cpu);
DFLOW_INSTANTIATE_KERNEL(Pack, Cpu);
DFLOW_INSTANTIATE_KERNEL(Unpack, Cpu);

}  // namespace dflow
