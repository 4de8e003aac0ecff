#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>

#include <array>
#include <string_view>

namespace dflow {

/// Elements or rows of params at index tuples: params [limits..., row...], indices [n..., number of limits] gives
/// [n..., row...].
struct GatherNd : StandardOp<"GatherNd", AllTypes, IndexTypes> {
  using Inputs = In<T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"Tparams", "Tindices"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The sums of the updates that name each place of a tensor of shape input 2: indices [n..., number of limits],
/// updates [n..., row...] gives [limits..., row...].
struct ScatterNd : StandardOp<"ScatterNd", NumberTypes, IndexTypes> {
  using Inputs = In<U, T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// params: [limits..., row...], indices: [n..., d], where d is the number of limits: gives [n..., row...]. Each tuple
/// of d indices names an element of params, or a row if d is less than the rank. d of 0 names all of params.
///
/// ```cpp
/// auto corners = df::gather_nd(matrix, df::Tensor<std::int32_t>({2, 2}, {0, 0, 3, 3}));  // two elements
/// ```
/// Errors: InvalidArgument if indices is a scalar, or d exceeds the rank of params; in the step, naming position and
/// range, if an index is outside of its dimension.
template <class A, class B>
  requires Accepts<GatherNd, A, B>
Output<ElementFor<GatherNd, A, B>> gather_nd(const A& params, const B& indices, const At& at = {}) {
  return apply<GatherNd>(params, indices, {}, at);
}

namespace detail {
AnyOutput any_scatter_nd(const AnyOutput& indices, const AnyOutput& updates, const IndexList& shape, const At& at);
}  // namespace detail

/// The reverse of gather_nd: indices [n..., d] and updates [n..., row...] give a tensor of the given shape,
/// [limits..., row...], where d is the number of limits. It has the sum of the updates of each tuple at its place,
/// added in order, and zeros elsewhere. 16-bit floats are added in float and rounded once.
///
/// ```cpp
/// auto y = df::scatter_nd(df::Tensor<std::int32_t>({3, 1}, {4, 0, 4}), x, {6});  // [x(1), 0, 0, 0, x(0) + x(2), 0]
/// ```
/// Errors: InvalidArgument if indices is a scalar, the shapes do not fit, or the shape is none; in the step, naming
/// position and range, if an index is outside of its dimension.
template <detail::ArgumentOf<IndexTypes> I, AllowedFor<ScatterNd> T>
Output<T> scatter_nd(const I& indices, const Output<T>& updates, const IndexList& shape, const At& at = {}) {
  const AnyOutput edge = detail::edge_beside<IndexTypes>(updates, indices, at);
  return Output<T>::unchecked(detail::any_scatter_nd(edge, updates, shape, at));
}

}  // namespace dflow
