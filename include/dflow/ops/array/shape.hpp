#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// The extents of the input's dimensions.
struct ShapeOf : StandardOp<"Shape", AllTypes> {
  using Outputs = Out<std::int32_t>;
  static constexpr OpRole role = OpRole::shape;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The number of the input's dimensions.
struct RankOf : StandardOp<"Rank", AllTypes> {
  using Outputs = Out<std::int32_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The number of the input's elements.
struct SizeOf : StandardOp<"Size", AllTypes> {
  using Outputs = Out<std::int32_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The shape that x has in each step: [rank].
///
/// Errors: InvalidArgument in a step where a dimension exceeds 2^31-1.
template <AllowedFor<ShapeOf> T>
Output<std::int32_t> shape(const Output<T>& x, const At& at = {}) {
  return apply<ShapeOf>(x, {}, at);
}

/// The rank of x, a scalar.
template <AllowedFor<RankOf> T>
Output<std::int32_t> rank(const Output<T>& x, const At& at = {}) {
  return apply<RankOf>(x, {}, at);
}

/// The number of elements of x, a scalar.
///
/// Errors: InvalidArgument in a step where it exceeds 2^31-1.
template <AllowedFor<SizeOf> T>
Output<std::int32_t> size(const Output<T>& x, const At& at = {}) {
  return apply<SizeOf>(x, {}, at);
}

}  // namespace dflow
