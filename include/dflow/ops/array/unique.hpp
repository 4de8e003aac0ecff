#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/math/compare.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace dflow {

/// The elements of x that are not in y, and their positions in x: x [n], y [m] gives [count] of both.
struct ListDiff : StandardOp<"ListDiff", AllTypes, IndexTypes> {
  using Inputs = In<T, T>;
  using Outputs = Out<T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "out_idx"};
  static void infer(InferContext& context);
};

/// The distinct elements of the input [n] in the order of their first places: [count], and for each element of the
/// input the position of its like among them: [n].
struct Unique : StandardOp<"Unique", AllTypes, IndexTypes> {
  using Outputs = Out<T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "out_idx"};
  static void infer(InferContext& context);
};

/// Unique, and how often each element is in the input: [count].
struct UniqueWithCounts : StandardOp<"UniqueWithCounts", AllTypes, IndexTypes> {
  using Outputs = Out<T, U, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "out_idx"};
  static void infer(InferContext& context);
};

/// The outputs of `setdiff1d`.
template <Element T, class I>
struct SetDifference {
  Output<T> values;     ///< [count]
  Output<I> positions;  ///< [count], in x
};
/// The outputs of `unique` for x [n].
template <Element T, class I>
struct UniqueElements {
  Output<T> values;     ///< [count]
  Output<I> positions;  ///< [n]: x(i) is values(positions(i))
};
/// The outputs of `unique_with_counts` for x [n].
template <Element T, class I>
struct CountedElements {
  Output<T> values;     ///< [count]
  Output<I> positions;  ///< [n]: x(i) is values(positions(i))
  Output<I> counts;     ///< [count]: how often x has values(k)
};

/// The elements of x: [n] that are not among those of y: [m], in their order and as often as x has them, and their
/// positions in x. TensorFlow's ListDiff. Numbers are equal as by ==: -0 is 0, and NaN equals nothing.
///
/// ```cpp
/// auto [values, positions] = df::setdiff1d(x, df::Tensor<int>({2}, {3, 5}));  // of [1, 3, 4]: [1, 4] at [0, 2]
/// ```
/// Errors: InvalidArgument unless x and y are vectors; in the step, if x has more elements than `I` counts.
/// Unimplemented for a gradient by x.
template <class I = std::int32_t, class A, class B>
  requires Accepts<Equal, A, B> && AllowedForParam<I, ListDiff, 1>
SetDifference<ElementFor<Equal, A, B>, I> setdiff1d(const A& x, const B& y, const At& at = {}) {
  using T = ElementFor<Equal, A, B>;
  const auto edges = detail::edges_for<Equal>(at, x, y);
  const BuiltNode node = build<ListDiff>({edges[0], edges[1]}, {}, at, type_args<T, I>());
  return {Output<T>::unchecked(node.output(0)), Output<I>::unchecked(node.output(1))};
}

/// The distinct elements of x: [n], in the order of their first places, and for each element of x the position of its
/// like among them. Numbers are equal as by ==: -0 is 0, and each NaN is an element of its own.
///
/// ```cpp
/// auto [values, positions] = df::unique(words);  // of [b, a, b]: [b, a] and [0, 1, 0]
/// auto rows = df::gather(df::gather(table, values), positions);  // each row is fetched once
/// ```
/// Errors: InvalidArgument unless x is a vector; in the step, if x has more elements than `I` counts. Unimplemented for
/// a gradient by x.
template <class I = std::int32_t, AllowedFor<Unique> T>
  requires AllowedForParam<I, Unique, 1>
UniqueElements<T, I> unique(const Output<T>& x, const At& at = {}) {
  const BuiltNode node = build<Unique>({x}, {}, at, type_args<T, I>());
  return {Output<T>::unchecked(node.output(0)), Output<I>::unchecked(node.output(1))};
}

/// As `unique`, with the number of times that x has each of the elements.
template <class I = std::int32_t, AllowedFor<UniqueWithCounts> T>
  requires AllowedForParam<I, UniqueWithCounts, 1>
CountedElements<T, I> unique_with_counts(const Output<T>& x, const At& at = {}) {
  const BuiltNode node = build<UniqueWithCounts>({x}, {}, at, type_args<T, I>());
  return {Output<T>::unchecked(node.output(0)), Output<I>::unchecked(node.output(1)),
          Output<I>::unchecked(node.output(2))};
}

}  // namespace dflow
