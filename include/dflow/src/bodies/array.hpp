#pragma once

/// Bodies of the CPU kernels of family array. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/array/gather_nd.ipp>
#include <dflow/kernels/cpu/array/list.hpp>
#include <dflow/kernels/cpu/array/unique.ipp>
#include <dflow/kernels/cpu/array/where.ipp>
