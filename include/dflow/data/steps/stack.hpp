#pragma once

#include <dflow/core/any_tensor.hpp>

#include <span>

namespace dflow::data {

/// Stacks tensors of one shape as rows: n of [...] give [n, ...]. Rows that lie side by side in one buffer are not
/// copied: the result shares the buffer. All other rows are copied once.
///
/// Errors: InvalidArgument for no row, and for rows of different element types or shapes.
AnyTensor stack_rows(std::span<const AnyTensor> rows);

/// The same for rows of one rank and different extents. Each row is filled up at the ends of its dimensions, to the
/// largest of the extents, with `padding` (strings with "").
///
/// Errors: InvalidArgument also for a padding that the element type cannot hold.
AnyTensor stack_padded(std::span<const AnyTensor> rows, double padding);

}  // namespace dflow::data
