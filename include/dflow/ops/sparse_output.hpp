#pragma once

#include <dflow/graph/output.hpp>

#include <cstdint>

namespace dflow {

/// The three edges that carry a sparse tensor, as in TensorFlow's SparseTensor: the values, in row-major order, their
/// indices, and the dense shape.
///
/// Thread safety: a value type.
template <Element T>
struct SparseOutput {
  Output<std::int64_t> indices;      ///< [values, rank]
  Output<T> values;                  ///< [values]
  Output<std::int64_t> dense_shape;  ///< [rank]
};

}  // namespace dflow
