#pragma once

#include <dflow/data/stream.hpp>

namespace dflow::data {

/// Keeps the elements that have been read, in memory, for all passes of this recipe and its copies: what stands before
/// it is read once, as its first epoch, by whichever pass needs an element first, while others that need one that is
/// not there yet wait. Until all has been read, that pass and its threads are the recipe's, whichever iterators go.
SharedRecipe cache_recipe(SharedRecipe input);

}  // namespace dflow::data
