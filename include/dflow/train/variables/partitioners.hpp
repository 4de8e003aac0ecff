#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/core/shape.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace dflow {

/// The number of parts of a variable of `shape` along each dimension; at most one of the numbers is above 1. Called by
/// `partitioned_variable`.
using Partitioner = std::function<std::vector<std::int64_t>(const Shape& shape, DType dtype)>;

/// `num_parts` parts along `axis`, or one part for each index if there are fewer indices. As in TensorFlow.
///
/// Errors: InvalidArgument for `num_parts` below 1; of the partitioner, for a shape without that dimension.
Partitioner fixed_size_partitioner(std::int64_t num_parts, int axis = 0);

struct VariableAxisSizeOptions {
  int axis = 0;
  std::int64_t bytes_per_string = 16;  ///< a guess
  std::int64_t max_parts = 0;          ///< 0: no limit
};

/// As few parts along the axis as possible, each of at most `max_part_bytes`, but of at least one index. As in
/// TensorFlow.
///
/// Errors: InvalidArgument for sizes below 1 or `max_parts` below 0; of the partitioner, for a shape without that
/// dimension.
Partitioner variable_axis_size_partitioner(std::int64_t max_part_bytes, const VariableAxisSizeOptions& options = {});

struct MinMaxVariableOptions {
  std::int64_t max_parts = 1;
  int axis = 0;
  std::int64_t min_part_bytes = std::int64_t{256} << 10;
  std::int64_t bytes_per_string = 16;  ///< a guess
};

/// At most `max_parts` parts along the axis, each of at least `min_part_bytes`. As in TensorFlow.
///
/// Errors: InvalidArgument for sizes below 1; of the partitioner, for a shape without that dimension.
Partitioner min_max_variable_partitioner(const MinMaxVariableOptions& options = {});

}  // namespace dflow
