#include <dflow/kernels/cpu/summary/list.hpp>
#include <dflow/kernels/cpu/summary/summary.ipp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(SummaryOps, Cpu);

}  // namespace dflow
