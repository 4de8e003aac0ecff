#include <dflow/kernels/cpu/array_gather.hpp>
#include <dflow/kernels/cpu/array_transpose.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(Gather, Cpu);
DFLOW_INSTANTIATE_KERNEL(Transpose, Cpu);
DFLOW_INSTANTIATE_KERNEL(InvertPermutation, Cpu);

}  // namespace dflow
