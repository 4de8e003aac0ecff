#pragma once

#include <dflow/kernels/typed_kernel.hpp>

namespace dflow {

/// Included by the units that instantiate the library's kernels, and by everything in header-only mode.
template <OpType O, class Device>
std::unique_ptr<AnyKernel> make_library_kernel(const KernelInit& init) {
  return make_kernel<O, Device>(init);
}

}  // namespace dflow

/// One line per op of a family's unit: `DFLOW_INSTANTIATE_KERNEL(MatMul, Cpu);`
#define DFLOW_INSTANTIATE_KERNEL(Op, Device) template std::unique_ptr<AnyKernel> make_library_kernel<Op, Device>(const KernelInit&)
