#pragma once

#include <dflow/kernels/contract/kernel_table.hpp>

namespace dflow {

/// The kernels of a GPU for the library's ops, and for its part in collectives that several GPUs compute together.
KernelTable standard_cuda_kernels();
/// The same kernels, and the kernel of chains of elementwise ops, which lets passes join ops. The table is for a GPU
/// with a driver that makes kernels at run time (`cuda::Programs`).
KernelTable chaining_cuda_kernels();

}  // namespace dflow
