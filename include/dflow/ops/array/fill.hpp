#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/math/binary.hpp>

namespace dflow {

/// A tensor of shape `dims`; all its elements are `value`.
struct Fill : StandardOp<"Fill", AllTypes, IndexTypes> {
  using Inputs = In<U, T>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "index_type"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// start, start + delta, start + 2 delta, ... as long as they lie before limit.
struct Range : StandardOp<"Range", RealTypes> {
  using Inputs = In<T, T, T>;
  static constexpr std::array<std::string_view, 1> type_names{"Tidx"};
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

namespace detail {
AnyOutput any_fill(GraphStore& graph, const IndexList& dims, AnyTensor value, const At& at);
/// 0, 1, ..., n - 1 as int32, for an int32 scalar n.
AnyOutput counting(const AnyOutput& n, const At& at = {});
AnyOutput any_linspace(const AnyOutput& start, const AnyOutput& stop, const AnyOutput& num, const At& at);

/// The number of elements of a Range. Throws InvalidArgument if delta is 0 or leads away from limit.
std::int64_t range_size(const AnyTensor& start, const AnyTensor& limit, const AnyTensor& delta);
}  // namespace detail

/// A tensor of shape `dims` that holds `value` everywhere.
///
/// ```cpp
/// auto halves = df::fill(graph, {2, 3}, 0.5f);
/// ```
/// Errors: InvalidArgument if a dimension is negative or there are more elements than can be counted.
template <AllowedFor<Fill> T>
Output<T> fill(Graph& graph, const IndexList& dims, T value, const At& at = {}) {
  return Output<T>::unchecked(detail::any_fill(*graph.store(), dims, Tensor<T>(std::move(value)), at));
}
template <AllowedFor<Fill> T>
Output<T> fill(const IndexList& dims, const Output<T>& value, const At& at = {}) {
  return Output<T>::unchecked(build<Fill>({dims.edge(*value.graph(), at), value}, {}, at));
}
/// The graph is that of the edge `dims`, [n] int32 or int64: `df::fill(df::shape(x), 0.5f)`.
template <AllowedForParam<Fill, 1> I, class V>
  requires Accepts<Fill, Output<I>, V>
Output<ElementFor<Fill, Output<I>, V>> fill(const Output<I>& dims, const V& value, const At& at = {}) {
  return apply<Fill>(dims, value, {}, at);
}

/// A tensor of zeros (false, empty strings). Errors: as fill.
template <AllowedFor<Fill> T>
Output<T> zeros(Graph& graph, const IndexList& dims, const At& at = {}) {
  return fill<T>(graph, dims, T(), at);
}
/// A tensor of ones (true). Errors: as fill.
template <AllowedFor<Fill> T>
  requires contains_v<T, PlainTypes>
Output<T> ones(Graph& graph, const IndexList& dims, const At& at = {}) {
  return fill<T>(graph, dims, T(1), at);
}

/// start, start + delta, ... up to but without limit: a vector of ceil((limit - start) / delta) elements; all three
/// are scalars. Difference and quotient are rounded to T, as in TensorFlow and NumPy: a range from 0 to 0.3f by 0.1f
/// has three elements. Rounding may still make the last of many elements equal to limit.
///
/// Errors: InvalidArgument if delta is 0, or limit lies on the other side of start; at once if all are constants, else
/// when the step runs.
///
/// ```cpp
/// auto positions = df::range(0, df::size(x), 1);
/// ```
template <class A, class B, class C>
  requires Accepts<Range, A, B, C>
Output<ElementFor<Range, A, B, C>> range(const A& start, const B& limit, const C& delta, const At& at = {}) {
  return apply<Range>(start, limit, delta, {}, at);
}
template <AllowedFor<Range> T>
Output<T> range(Graph& graph, T start, T limit, T delta = T(1), const At& at = {}) {
  const At here{.where = at.where};
  return apply<Range>(constant(graph, start, here), constant(graph, limit, here), constant(graph, delta, here), {}, at);
}

/// `num` values from start to stop, evenly spaced: TensorFlow's LinSpace. start and stop are scalars of floats, num a
/// scalar of int32 or int64. The last value is `stop` exactly. One value is `start`, and none is an empty vector.
///
/// ```cpp
/// auto ticks = df::linspace(graph, 0.0f, 1.0f, 11);
/// ```
/// Errors: InvalidArgument if num is negative, or an argument is not a scalar.
template <class A, class B, class C>
  requires Accepts<Sub, A, B> && contains_v<ElementFor<Sub, A, B>, FloatTypes> && detail::ArgumentOf<C, IndexTypes>
Output<ElementFor<Sub, A, B>> linspace(const A& start, const B& stop, const C& num, const At& at = {}) {
  const auto ends = detail::edges_for<Sub>(at, start, stop);
  return Output<ElementFor<Sub, A, B>>::unchecked(
      detail::any_linspace(ends[0], ends[1], detail::edge_beside<IndexTypes>(ends[0], num, at), at));
}
template <std::floating_point T>
Output<T> linspace(Graph& graph, T start, T stop, std::int64_t num, const At& at = {}) {
  return linspace(constant(graph, start, {.where = at.where}), stop, num, at);
}

}  // namespace dflow
