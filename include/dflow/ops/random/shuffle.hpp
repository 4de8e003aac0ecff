#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/random/random.hpp>

#include <cstdint>

namespace dflow {

/// The rows of a tensor in random order, a new order in each run: x [rows, ...] -> the same shape.
///
/// The order follows Fisher and Yates, with one 32-bit word of the stream for each row but the last. Step i swaps row i
/// with row i + (word i modulo the number of rows from i on). For the same two seeds the orders are TensorFlow's, in
/// each run of a session.
struct RandomShuffle : StatefulOp<"RandomShuffle", AllTypes> {
  using Attrs = RandomAttrs;
  using Inputs = In<T>;
  static void infer(InferContext& context);
};

struct ShuffleOptions {
  std::uint64_t seed = 0;  ///< 0: from the graph's seed, or another seed on each device
};

namespace detail {
AnyOutput any_random_shuffle(const AnyOutput& x, const ShuffleOptions& options, const At& at);
}  // namespace detail

/// x with its rows in random order, a new order in each step.
///
/// Errors: InvalidArgument for a scalar; in the step for 2^32 rows or more.
template <AllowedFor<RandomShuffle> T>
Output<T> random_shuffle(const Output<T>& x, const ShuffleOptions& options = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_random_shuffle(x, options, at));
}

}  // namespace dflow
