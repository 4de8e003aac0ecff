#pragma once

#include <dflow/graph/infer_context.hpp>

#include <algorithm>
#include <cstdint>

/// Functions that shape functions use for the matrices in the last two dimensions of an input.
namespace dflow::detail {

/// The shape of input `i`, which holds square matrices: if one dimension is known, both are.
inline PartialShape square_matrices(const InferContext& context, int i) {
  const PartialShape x = context.with_rank_at_least(i, 2);
  if (!x.has_rank()) return x;
  const int last = x.rank() - 1;
  const std::int64_t rows = x[last - 1], columns = x[last];
  if (rows != dynamic && columns != dynamic && rows != columns) {
    context.fail(str_cat("input ", i, " must be square matrices, got shape ", x.to_string()));
  }
  const std::int64_t n = rows == dynamic ? columns : rows;
  return x.with_dim(last, n).with_dim(last - 1, n);
}

/// The smaller of two extents, as far as it is known.
inline std::int64_t smaller_dim(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a == dynamic || b == dynamic ? dynamic : std::min(a, b);
}

}  // namespace dflow::detail
