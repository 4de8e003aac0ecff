#pragma once

#include <dflow/data/stream.hpp>

#include <cstdint>

namespace dflow::data {

struct ShuffleOptions {
  /// The same seed gives the same orders on any machine.
  std::uint64_t seed = 0;
  /// Each epoch has another order; false: all epochs have the order of the first.
  bool reshuffle = true;
};

/// Holds `buffer` elements and gives one of them at random; the next element takes its place. The order is as random
/// as the buffer is large. The random numbers are Philox's by seed and epoch. The state is the numbers of the held
/// elements. To restore it, the input is read again from before the oldest of them, about `buffer` * ln(`buffer`)
/// elements.
///
/// Errors: InvalidArgument for a buffer of 0.
SharedRecipe shuffle_recipe(SharedRecipe input, std::uint64_t buffer, ShuffleOptions options);

}  // namespace dflow::data
