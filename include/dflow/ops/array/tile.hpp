#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>

namespace dflow {

/// The input repeated multiples[i] times along each dimension i.
struct Tile : StandardOp<"Tile", AllTypes, IndexTypes> {
  using Inputs = In<T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tmultiples"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
AnyOutput any_tile(const AnyOutput& x, const IndexList& multiples, const At& at);
}  // namespace detail

/// x repeated: `tile(x, {2, 3})` makes [h, w] to [2 * h, 3 * w]. A multiple of 0 leaves no elements.
///
/// Errors: InvalidArgument unless there is one multiple per dimension of x, none of it negative.
template <AllowedFor<Tile> T>
Output<T> tile(const Output<T>& x, const IndexList& multiples, const At& at = {}) {
  return Output<T>::unchecked(detail::any_tile(x, multiples, at));
}

}  // namespace dflow
