#include <dflow/kernels/cpu/math/broadcast.ipp>
#include <dflow/kernels/cpu/math/list.hpp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ConversionOps, Cpu);

}  // namespace dflow
