#pragma once

/// Bodies of the CPU kernels of family summary; a table instantiates those that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/summary/list.hpp>
#include <dflow/kernels/cpu/summary/summary.ipp>
