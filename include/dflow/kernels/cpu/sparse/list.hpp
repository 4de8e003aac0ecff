#pragma once

/// CPU kernels of family sparse.

#include <dflow/kernels/cpu/sparse/edit_distance.hpp>
#include <dflow/kernels/cpu/sparse/sparse_indices.hpp>
#include <dflow/kernels/cpu/sparse/sparse_matmul.hpp>
