#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>

namespace dflow {

/// The positions of elements that are not zero (true), in order: x of rank r gives [count, r].
struct Where : StandardOp<"Where", PlainTypes> {
  using Outputs = Out<std::int64_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The positions of the elements of x that are true, or not zero: int64 [count, rank], in the order of the elements.
/// -0 is zero, and NaN is not. A scalar gives [1, 0] or [0, 0].
///
/// ```cpp
/// auto positions = df::where(x > 0.5f);  // [[0, 2], [1, 1]]: x(0, 2) and x(1, 1) are larger
/// ```
/// Errors: InvalidArgument if x is empty or of another graph.
template <AllowedFor<Where> T>
Output<std::int64_t> where(const Output<T>& x, const At& at = {}) {
  return apply<Where>(x, {}, at);
}

}  // namespace dflow
