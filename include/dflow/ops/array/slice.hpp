#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>

#include <initializer_list>

namespace dflow {

/// The box of the input that starts at `begin` and has extents `size`.
struct Slice : StandardOp<"Slice", AllTypes, IndexTypes> {
  using Inputs = In<T, U, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Index"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The input with zeros (false) around it; row i of `paddings` says how many before and behind along dimension i.
struct Pad : StandardOp<"Pad", PlainTypes, IndexTypes> {
  using Inputs = In<T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tpaddings"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// How much a dimension grows at either end.
struct PadWidth {
  std::int64_t before = 0;
  std::int64_t after = 0;
};

namespace detail {
AnyOutput any_slice(const AnyOutput& x, const IndexList& begin, const IndexList& size, const At& at);
AnyOutput any_pad(const AnyOutput& x, std::initializer_list<PadWidth> paddings, const At& at);
}  // namespace detail

/// The part of x that starts at `begin` and is `size` large; a size of -1 is all the rest of its dimension.
///
/// ```cpp
/// auto first_rows = df::slice(x, {0, 0}, {2, -1});
/// ```
/// Errors: InvalidArgument if begin and size have not one entry per dimension of x, or reach outside x.
template <AllowedFor<Slice> T>
Output<T> slice(const Output<T>& x, const IndexList& begin, const IndexList& size, const At& at = {}) {
  return Output<T>::unchecked(detail::any_slice(x, begin, size, at));
}

/// x surrounded by zeros: `pad(x, {{1, 1}, {2, 2}})` makes [h, w] to [h + 2, w + 4].
///
/// Errors: InvalidArgument unless there is one pair per dimension of x, none of it negative.
template <AllowedFor<Pad> T>
Output<T> pad(const Output<T>& x, std::initializer_list<PadWidth> paddings, const At& at = {}) {
  return Output<T>::unchecked(detail::any_pad(x, paddings, at));
}
/// paddings: [rank, 2].
template <class A, class B>
  requires Accepts<Pad, A, B>
Output<ElementFor<Pad, A, B>> pad(const A& x, const B& paddings, const At& at = {}) {
  return apply<Pad>(x, paddings, {}, at);
}

}  // namespace dflow
