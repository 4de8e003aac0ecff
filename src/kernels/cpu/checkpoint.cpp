#include <dflow/kernels/cpu/checkpoint/list.hpp>
#include <dflow/kernels/cpu/checkpoint/save_restore.ipp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(CheckpointOps, Cpu);

}  // namespace dflow
