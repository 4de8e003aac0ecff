#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/sparse/edit_distance.hpp>
#include <dflow/ops/sparse/sparse_indices.hpp>
#include <dflow/ops/sparse/sparse_joins.hpp>
#include <dflow/ops/sparse/sparse_matmul.hpp>

namespace dflow {

/// The family's ops in the standard table: on sparse tensors.
using SparseOps =
    TypeList<SparsePositions, SparseOrder, SparseUnique, SparseToDense, SparseTensorDenseMatMul, EditDistance>;

}  // namespace dflow
