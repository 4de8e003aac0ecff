#pragma once

#include <dflow/data/stream.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dflow::data {

struct BatchOptions {
  /// Leaves out a last batch of fewer elements.
  bool drop_remainder = false;
};

struct PaddedBatchOptions {
  bool drop_remainder = false;
  double padding = 0;  ///< of numbers; strings are filled up with ""
};

/// Bucket i of n + 1 takes the lengths in [boundaries[i - 1], boundaries[i]). Its batches have sizes[i] elements.
struct BucketOptions {
  std::vector<std::int64_t> boundaries;  ///< n, ascending
  std::vector<std::uint64_t> sizes;      ///< n + 1
  bool drop_remainder = false;
  double padding = 0;
};

struct WindowOptions {
  std::optional<std::uint64_t> shift = {};  ///< elements between the beginnings of two windows; none: the window's size
  bool drop_remainder = false;
};

/// How elements become a batch.
struct Batching {
  const ElementType* element;
  const ElementType* batch;
  std::optional<double> padding = {};  ///< none: shapes must be the same

  Item operator()(std::vector<Item>& items) const;
  /// The padding, as a recipe's description shows it.
  std::string described_padding() const;
};

/// Errors: InvalidArgument for a batch of no or a negative number of elements; in a pass, for elements that do not fit
/// together.
SharedRecipe batch_recipe(SharedRecipe input, std::uint64_t n, bool drop_remainder, Batching batching);

/// Each element waits in the bucket of its length until the bucket is full. At the end the buckets give the elements
/// that they still hold, the bucket of the shortest lengths first. To restore a state, the input is read again from
/// before the element that has waited longest.
///
/// Errors: InvalidArgument for options that do not fit together.
SharedRecipe bucket_recipe(SharedRecipe input, std::function<std::int64_t(const Item&)> length, BucketOptions options,
                           Batching batching);

/// `join` makes one element of `n` consecutive elements. An element is moved into the last window that has it and
/// copied into the others: if windows do not overlap, nothing is copied.
///
/// Errors: InvalidArgument for a window or a shift of no or a negative number of elements.
SharedRecipe window_recipe(SharedRecipe input, std::uint64_t n, WindowOptions options,
                           std::function<Item(std::vector<Item>)> join);

}  // namespace dflow::data
