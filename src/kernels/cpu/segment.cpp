#include <dflow/kernels/cpu/segment.hpp>
#include <dflow/kernels/library_kernel.hpp>

namespace dflow {

DFLOW_INSTANTIATE_KERNEL(UnsortedSegmentSum, Cpu);

}  // namespace dflow
