#pragma once

#include <dflow/kernels/cuda/bodies/rows.hpp>
#include <dflow/kernels/cuda/cuda.hpp>

#include <cstdint>
#include <string_view>

namespace dflow::cuda::detail {

// Rows are sorted by their indices, and rows of equal index stay in their given order. One thread for each element of
// a row takes the rows one after the other. The bits are the same in every run, and no thread waits for another.

/// The rows of a call sorted by their indices, in memory that later work of the compute stream may use.
struct SortedRows {
  AnyTensor keys, places;  ///< uint64, int64 [count]

  /// Precondition: there are indices.
  SortedRows(const KernelContext& context, const AnyTensor& indices, RowKeysArgs args);
};

/// The note of the kernels of rows.
CudaStep::Note note_rows(const KernelContext& context, std::string_view what, std::int64_t limit,
                         std::string_view outside);

}  // namespace dflow::cuda::detail
