#pragma once

#include <dflow/core/any_tensor.hpp>

#include <span>

namespace dflow::data {

/// Tensors of one shape as the rows of one more: n of [...] give [n, ...]. Rows that lie side by side in one buffer are
/// not copied, the result shares it; all others are copied once.
///
/// Errors: InvalidArgument for no row, and for rows of different element types or shapes.
AnyTensor stack_rows(std::span<const AnyTensor> rows);

/// The same of rows of one rank whose extents may differ: each is filled up with `padding` (strings with "") at the
/// ends of its dimensions to the largest of the extents.
///
/// Errors: InvalidArgument also for a padding that the element type cannot hold.
AnyTensor stack_padded(std::span<const AnyTensor> rows, double padding);

}  // namespace dflow::data
