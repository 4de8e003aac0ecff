#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/sparse/sparse_indices.hpp>

#include <vector>

namespace dflow {

/// The different indices of a sparse tensor: indices [n, rank] in any order, dense_shape [rank]. Gives them in
/// row-major order, [m, rank], and for each given index the row that it has there, [n]. An op of dflow's own, of which
/// `sparse_add` is made.
struct SparseUnique : StandardOp<"SparseUnique"> {
  using Inputs = In<std::int64_t, std::int64_t>;
  using Outputs = Out<std::int64_t, std::int64_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The element types of sums of sparse tensors.
template <class T>
concept SparseSummand = AllowedFor<T, UnsortedSegmentSum> && contains_v<T, SignedRealTypes>;

namespace detail {
/// threshold: of the same element type, or an empty edge.
AnySparseOutput any_sparse_add(const AnySparseOutput& a, const AnySparseOutput& b, const AnyOutput& threshold,
                               const At& at);
AnySparseOutput any_sparse_concat(std::int64_t axis, const std::vector<AnySparseOutput>& xs, const At& at);
std::vector<AnySparseOutput> any_sparse_split(std::int64_t axis, std::int64_t count, const AnySparseOutput& x,
                                              const At& at);
}  // namespace detail

/// a + b, sparse, TensorFlow's SparseAdd: the indices of both, in row-major order, each once. Indices may be in any
/// order and repeat: equal ones are added. With a threshold, sums whose absolute value is below it are left out;
/// without one, sums that are 0 stay. The gradient goes to the values of both.
///
/// ```cpp
/// auto sum = df::sparse_add(a, b, 0.5f);
/// ```
/// Errors: InvalidArgument; in the step, naming position and shapes, unless the dense shapes are equal, and for an
/// index outside of them.
template <SparseSummand T>
SparseOutput<T> sparse_add(const SparseOutput<T>& a, const SparseOutput<T>& b, const At& at = {}) {
  return detail::any_sparse_add(a, b, {}, at).template as<T>();
}
template <SparseSummand T>
SparseOutput<T> sparse_add(const SparseOutput<T>& a, const SparseOutput<T>& b,
                           const std::type_identity_t<Operand<T>>& threshold, const At& at = {}) {
  return detail::any_sparse_add(a, b, threshold.beside(a.values), at).template as<T>();
}

/// Sparse tensors one behind the other along an axis, in row-major order, TensorFlow's SparseConcat. A negative axis
/// counts from behind. The gradient goes to the values of all.
///
/// Errors: InvalidArgument if there are none, if the graph does not know the rank of one, if the ranks differ, and for
/// an axis outside [-rank, rank); in the step, naming position and shapes, unless the other dimensions are equal, and
/// for an index outside of the dense shape of all.
template <AllowedFor<SparseToDense> T>
SparseOutput<T> sparse_concat(std::int64_t axis, const std::vector<SparseOutput<T>>& xs, const At& at = {}) {
  return detail::any_sparse_concat(axis, {xs.begin(), xs.end()}, at).template as<T>();
}

/// `count` parts of a sparse tensor along an axis, TensorFlow's SparseSplit. If the dimension is no multiple of
/// `count`, the first parts have one more of it than the others. Indices stay in their order. A negative axis counts
/// from behind. The gradient of each part goes to the values.
///
/// Errors: InvalidArgument if count is below 1, if the graph does not know the rank of x, and for an axis outside
/// [-rank, rank); in the step if the dimension is below `count`, and, naming position and shape, for an index outside
/// of the dense shape.
template <AllowedFor<SparseToDense> T>
std::vector<SparseOutput<T>> sparse_split(std::int64_t axis, std::int64_t count, const SparseOutput<T>& x,
                                          const At& at = {}) {
  std::vector<SparseOutput<T>> parts;
  for (const detail::AnySparseOutput& part : detail::any_sparse_split(axis, count, x, at)) {
    parts.push_back(part.template as<T>());
  }
  return parts;
}

}  // namespace dflow
