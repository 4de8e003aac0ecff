#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/kernels/cpu/cpu_kernel.ipp>
#include <dflow/kernels/cpu/elementwise/kernel.ipp>
#include <dflow/kernels/cpu/file_kernel.ipp>
#include <dflow/kernels/cpu/routines/kernel_cache.ipp>
#include <dflow/kernels/cpu/routines/options.ipp>
