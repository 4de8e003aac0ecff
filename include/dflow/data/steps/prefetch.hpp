#pragma once

#include <dflow/data/stream.hpp>

#include <cstdint>

namespace dflow::data {

/// Reads the input in a thread of the iterator's own, at most `n` elements ahead of what is asked for. What the input
/// throws comes where its element would have come. The thread starts with the first element that is asked for; an
/// iterator that is destroyed waits for the element that the thread is just making, and for no other.
///
/// Errors: InvalidArgument for no element ahead, or more than `max_read_ahead`; ResourceExhausted, where an element is
/// asked for, if there is no thread.
SharedRecipe prefetch_recipe(SharedRecipe input, std::uint64_t n);

}  // namespace dflow::data
