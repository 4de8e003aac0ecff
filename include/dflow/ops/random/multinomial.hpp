#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/random/random.hpp>

#include <cstdint>

namespace dflow {

/// Classes drawn from one distribution for each row: logits [batch, classes], num_samples, a scalar -> [batch,
/// num_samples].
///
/// Sample i of all takes the words 2 i and 2 i + 1 of the run's part of the stream, and looks its number up in the sums
/// of the row's probabilities, which are computed in double.
struct Multinomial : StatefulOp<"Multinomial", FloatTypes> {
  using Attrs = RandomAttrs;
  using Inputs = In<T, std::int32_t>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

struct MultinomialOptions {
  std::uint64_t seed = 0;  ///< 0: from the graph's seed, or another seed on each device
};

namespace detail {
AnyOutput any_multinomial(const AnyOutput& logits, const AnyOutput& num_samples, const MultinomialOptions& options,
                          const At& at);
}  // namespace detail

/// logits [batch, classes], the logarithms of probabilities that need not sum to 1; num_samples, an int32 scalar ->
/// classes in [0, classes), [batch, num_samples], drawn anew in each step. A class whose logit is not finite is not
/// drawn.
///
/// ```cpp
/// auto next = df::multinomial(logits, 1);   // [batch, 1]
/// ```
/// Errors: InvalidArgument if logits is no matrix, has no classes, or num_samples is negative; in the step, with its
/// number, for a row without a finite logit.
template <class A, class B>
  requires Accepts<Multinomial, A, B>
Output<std::int64_t> multinomial(const A& logits, const B& num_samples, const MultinomialOptions& options = {},
                                 const At& at = {}) {
  const auto edges = detail::edges_for<Multinomial>(at, logits, num_samples);
  return Output<std::int64_t>::unchecked(detail::any_multinomial(edges[0], edges[1], options, at));
}

}  // namespace dflow
