#pragma once

/// Bodies of the ops of family sparse.

#include <dflow/ops/sparse/edit_distance.ipp>
#include <dflow/ops/sparse/embedding_sparse.ipp>
#include <dflow/ops/sparse/sparse_indices.ipp>
#include <dflow/ops/sparse/sparse_joins.ipp>
#include <dflow/ops/sparse/sparse_matmul.ipp>
