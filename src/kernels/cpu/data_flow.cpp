#include <dflow/kernels/cpu/data_flow/accumulator.ipp>
#include <dflow/kernels/cpu/data_flow/barrier.ipp>
#include <dflow/kernels/cpu/data_flow/list.hpp>
#include <dflow/kernels/cpu/data_flow/lookup_table.ipp>
#include <dflow/kernels/cpu/data_flow/queue.ipp>
#include <dflow/kernels/cpu/data_flow/staleness_clock.ipp>
#include <dflow/kernels/cpu/data_flow/token_barrier.ipp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(DataFlowOps, Cpu);

}  // namespace dflow
