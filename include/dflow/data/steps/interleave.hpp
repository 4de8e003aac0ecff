#pragma once

#include <dflow/data/stream.hpp>

#include <cstdint>
#include <functional>

namespace dflow::data {

struct InterleaveOptions {
  std::uint64_t cycle = 4;  ///< datasets that are read in turn
  std::uint64_t block = 1;  ///< elements of one dataset before the next dataset's turn
};

/// Makes a dataset of each element by `expand`, opens `cycle` of them at a time, and gives `block` elements of each in
/// turn, as TensorFlow's interleave. With a cycle of 1 the datasets follow one another. A state holds the states of
/// the open datasets; the elements that they were made of are read again.
///
/// Memory is in proportion to the number of open datasets, however long the cycle is.
///
/// Errors: InvalidArgument for a cycle or block of 0.
SharedRecipe interleave_recipe(SharedRecipe input, std::function<SharedRecipe(Item)> expand, InterleaveOptions options);

}  // namespace dflow::data
