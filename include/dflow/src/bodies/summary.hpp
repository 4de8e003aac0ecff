#pragma once

/// Bodies of the CPU kernels of family summary. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/summary/list.hpp>
#include <dflow/kernels/cpu/summary/summary.ipp>
