#pragma once

#include <dflow/op/build.hpp>

#include <vector>

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

namespace detail {
std::vector<Output<std::int32_t>> shape_n(const std::vector<AnyOutput>& xs, const At& at);
}  // namespace detail

/// The shape of each of the xs. TensorFlow's ShapeN, as many Shape nodes; a name is given to the first one, and with
/// the number behind it, `name_1`, to each other one.
///
/// Errors: as `shape`.
template <AllowedFor<ShapeOf> T>
std::vector<Output<std::int32_t>> shape_n(const std::vector<Output<T>>& xs, const At& at = {}) {
  return detail::shape_n(std::vector<AnyOutput>(xs.begin(), xs.end()), at);
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
