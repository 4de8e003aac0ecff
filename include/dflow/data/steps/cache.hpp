#pragma once

#include <dflow/data/stream.hpp>

namespace dflow::data {

/// Keeps the elements that have been read, in memory, for all passes of this recipe and its copies. The input is read
/// once, as its first epoch. The pass that needs an element first reads it; other passes that need an unread element
/// wait. A pass that the reading thread runs meanwhile, as a task of a pool in which it waits, reads the input itself.
/// The recipe owns the stream of the input and its threads until all elements have been read, even if iterators
/// are destroyed. A pass that gives failures keeps them, too; any other pass throws their errors.
SharedRecipe cache_recipe(SharedRecipe input);

}  // namespace dflow::data
