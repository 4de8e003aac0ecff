#pragma once

#include <dflow/data/stream.hpp>

#include <cstdint>

namespace dflow::data {

struct ShuffleOptions {
  /// The same seed gives the same orders on any machine.
  std::uint64_t seed = 0;
  /// Each epoch in another order; false: all in that of the first.
  bool reshuffle = true;
};

/// Holds `buffer` elements and gives one of them by chance, whose place the next one takes: as random as the buffer is
/// large. The numbers are Philox's by seed and epoch. The state is the numbers of the elements that are held: to
/// restore it the input is read again from before the oldest of them, about `buffer` * ln(`buffer`) elements.
///
/// Errors: InvalidArgument for a buffer of 0.
SharedRecipe shuffle_recipe(SharedRecipe input, std::uint64_t buffer, ShuffleOptions options);

}  // namespace dflow::data
