#pragma once

/// Bodies of the CPU kernels of family reduction. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/reduction/list.hpp>
#include <dflow/kernels/cpu/reduction/scan.ipp>
#include <dflow/kernels/cpu/reduction/sorted_segment.ipp>
#include <dflow/kernels/cpu/reduction/top_k.ipp>
