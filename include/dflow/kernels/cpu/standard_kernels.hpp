#pragma once

#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/kernels/cpu/cpu.hpp>

namespace dflow {

/// The CPU's kernels of all ops of the library.
const KernelRows& standard_cpu_kernels() noexcept;

}  // namespace dflow
