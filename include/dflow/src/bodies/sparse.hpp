#pragma once

/// Bodies of the CPU kernels of family sparse. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/sparse/edit_distance.ipp>
#include <dflow/kernels/cpu/sparse/list.hpp>
#include <dflow/kernels/cpu/sparse/sparse_indices.ipp>
#include <dflow/kernels/cpu/sparse/sparse_matmul.ipp>
