#include <dflow/kernels/cpu/io/files.ipp>
#include <dflow/kernels/cpu/io/list.hpp>
#include <dflow/kernels/cpu/io/reader.ipp>
#include <dflow/kernels/contract/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNELS(IoOps, Cpu);

}  // namespace dflow
