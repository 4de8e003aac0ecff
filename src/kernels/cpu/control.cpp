#include <dflow/kernels/cpu/control/list.hpp>
#include <dflow/kernels/cpu/control/print.ipp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(ControlOps, Cpu);

}  // namespace dflow
