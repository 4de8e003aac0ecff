#pragma once

#include <dflow/data/stream.hpp>

#include <cstdint>

namespace dflow::data {

/// Reads the input in a thread of the iterator's own, at most `n` elements ahead of the reader. An error of the input
/// is thrown in place of its element. The thread starts when the first element is asked for. An iterator that is
/// destroyed waits for the element that the thread is making, and for no other.
///
/// Errors: InvalidArgument for no element ahead, or more than half of `max_read_ahead`. ResourceExhausted, when an
/// element is asked for, if no thread can be started.
SharedRecipe prefetch_recipe(SharedRecipe input, std::uint64_t n);

}  // namespace dflow::data
