#pragma once

#include <dflow/kernels/cpu/cpu.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

namespace dflow {

/// The CPU's kernels of all ops of the library.
const KernelRows& standard_cpu_kernels() noexcept;

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/standard_kernels.ipp>
#endif
