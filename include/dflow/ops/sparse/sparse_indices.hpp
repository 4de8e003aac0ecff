#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/reduction/segment.hpp>
#include <dflow/ops/sparse_output.hpp>

namespace dflow {

/// Where the elements of a sparse tensor lie in a dense one: indices [n, rank], dense_shape [rank], target_shape [r]
/// with r <= rank. Gives [n], the row-major position of each index in a tensor of shape target_shape, which broadcasts
/// to dense_shape: its dimensions are the last ones of dense_shape, or 1. An op of dflow's own, of which the builders
/// below are made.
struct SparsePositions : StandardOp<"SparsePositions"> {
  struct Attrs {
    /// target_shape must be dense_shape.
    bool exact = false;
  };
  using Inputs = In<std::int64_t, std::int64_t, std::int64_t>;
  using Outputs = Out<std::int64_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The order that sorts a sparse tensor: indices [n, rank], dense_shape [rank]. Gives [n], the row of indices that
/// comes first in row-major order, then the second, and so on. Equal indices stay in their order.
struct SparseOrder : StandardOp<"SparseOrder"> {
  using Inputs = In<std::int64_t, std::int64_t>;
  using Outputs = Out<std::int64_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// A dense tensor of shape output_shape [rank]: sparse_values, a vector [n] or one number for all, at sparse_indices
/// [n, rank] (or [n], or one number, if rank is 1), and default_value elsewhere.
struct SparseToDense : StandardOp<"SparseToDense", AllTypes, IndexTypes> {
  struct Attrs {
    /// Indices must be in row-major order, and none may repeat. Otherwise they come in any order, and the last of equal
    /// ones counts.
    bool validate_indices = true;
  };
  using Inputs = In<U, U, T, T>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {

/// The edges of a sparse tensor without their element type.
struct AnySparseOutput {
  AnyOutput indices, values, dense_shape;

  template <Element T>
  AnySparseOutput(const SparseOutput<T>& sparse)  // NOLINT(google-explicit-constructor): the same thing
      : indices(sparse.indices), values(sparse.values), dense_shape(sparse.dense_shape) {}
  AnySparseOutput(AnyOutput i, AnyOutput v, AnyOutput s) noexcept
      : indices(std::move(i)), values(std::move(v)), dense_shape(std::move(s)) {}

  template <Element T>
  SparseOutput<T> as() const {
    return {Output<std::int64_t>::unchecked(indices), Output<T>::unchecked(values),
            Output<std::int64_t>::unchecked(dense_shape)};
  }
};

AnySparseOutput any_sparse_placeholder(GraphStore& graph, DType dtype, const PartialShape& shape, const At& at);
AnySparseOutput any_sparse_reorder(const AnySparseOutput& x, const At& at);
AnyOutput any_sparse_reduce_sum(const AnySparseOutput& x, const IndexList& axes, bool keep_dims, const At& at);
AnyOutput any_sparse_tensor_dense_add(const AnySparseOutput& a, const AnyOutput& b, const At& at);
/// The values of x times, or divided by, the elements of `dense` that lie where they do.
AnySparseOutput any_sparse_dense_cwise(const AnySparseOutput& x, const AnyOutput& dense, bool divides, const At& at);

}  // namespace detail

/// A sparse tensor that a step is fed: a placeholder for each of its three edges, named `NAME/indices`, `NAME/values`
/// and `NAME/shape`. Its feed is a SparseTensor.
///
/// ```cpp
/// auto ids = df::sparse_placeholder<std::int64_t>(graph, {df::dynamic, 100});
/// session.run({{ids, df::SparseTensor<std::int64_t>({{0, 3}, {2, 1}}, {5, 7}, {3, 100})}}, loss);
/// ```
/// `shape` says the rank; the step's extents are those of the sparse tensor that it is fed.
template <Element T>
SparseOutput<T> sparse_placeholder(Graph& graph, const PlaceholderShape& shape = PartialShape::unknown(),
                                   const At& at = {}) {
  return detail::any_sparse_placeholder(*graph.store(), dtype_of<T>, shape.shape(), at).template as<T>();
}

/// `sparse_indices` [n, rank], [n] or one number, int32 or int64; `output_shape` [rank] of the same type;
/// `sparse_values` [n] or one number; gives a tensor of that shape with default_value elsewhere. The gradient goes to
/// the values and to the default value.
///
/// Errors: InvalidArgument if the shapes do not fit; in the step, naming position and shape, for an index outside of
/// output_shape and, unless attrs.validate_indices is false, for an index that is not behind the one before it in
/// row-major order: out of order, or there twice. Without that check, the last of equal indices counts, and the
/// gradient is TensorFlow's: each of them has that of the element.
template <class A, class B, class C, class D>
  requires Accepts<SparseToDense, A, B, C, D>
Output<ElementFor<SparseToDense, A, B, C, D>> sparse_to_dense(const A& sparse_indices, const B& output_shape,
                                                              const C& sparse_values, const D& default_value,
                                                              SparseToDense::Attrs attrs = {}, const At& at = {}) {
  return apply<SparseToDense>(sparse_indices, output_shape, sparse_values, default_value, attrs, at);
}

/// A sparse tensor as a dense one, TensorFlow's sparse_tensor_to_dense; elements that it has not are default_value.
///
/// Errors: as `sparse_to_dense`.
template <AllowedFor<SparseToDense> T>
Output<T> sparse_tensor_to_dense(const SparseOutput<T>& x, const std::type_identity_t<T>& default_value = T(),
                                 SparseToDense::Attrs attrs = {}, const At& at = {}) {
  return apply<SparseToDense>(x.indices, x.dense_shape, x.values, default_value, attrs, at);
}

/// The same sparse tensor with its indices in row-major order, TensorFlow's SparseReorder. Equal indices stay in their
/// order. The gradient goes to the values.
///
/// Errors: InvalidArgument; in the step, naming position and shape, for an index outside of the dense shape.
template <AllowedFor<SparseToDense> T>
SparseOutput<T> sparse_reorder(const SparseOutput<T>& x, const At& at = {}) {
  return detail::any_sparse_reorder(x, at).template as<T>();
}

/// Sums over axes of a sparse tensor as a dense one, TensorFlow's SparseReduceSum: it loses the dimensions listed in
/// `axes`, or keeps them as 1; a negative axis counts from behind; no axes mean all of them. Indices may be in any
/// order and repeat: equal ones are added. The gradient goes to the values.
///
/// ```cpp
/// auto rows = df::sparse_reduce_sum(x, 1);   // [d0] of x [d0, d1]
/// ```
/// Errors: InvalidArgument for an axis outside [-rank, rank); in the step, naming position and shape, for an index
/// outside of the dense shape, if there are axes.
template <AllowedFor<UnsortedSegmentSum> T>
Output<T> sparse_reduce_sum(const SparseOutput<T>& x, const IndexList& axes = {}, ReduceAttrs attrs = {},
                            const At& at = {}) {
  return Output<T>::unchecked(detail::any_sparse_reduce_sum(x, axes, attrs.keep_dims, at));
}

/// x with each value multiplied by the element of `dense` beside it, TensorFlow's SparseDenseCwiseMul. The shape of
/// `dense` broadcasts to that of x, and not the other way round. Indices may be in any order.
///
/// Errors: InvalidArgument; in the step, naming position and shapes, for an index outside of the dense shape and for a
/// `dense` that does not broadcast to it.
template <AllowedFor<Mul> T>
SparseOutput<T> sparse_dense_cwise_mul(const SparseOutput<T>& x, const Output<T>& dense, const At& at = {}) {
  return detail::any_sparse_dense_cwise(x, dense, false, at).template as<T>();
}

/// x with each value divided by the element of `dense` beside it, TensorFlow's SparseDenseCwiseDiv; as
/// `sparse_dense_cwise_mul`.
template <AllowedFor<Div> T>
SparseOutput<T> sparse_dense_cwise_div(const SparseOutput<T>& x, const Output<T>& dense, const At& at = {}) {
  return detail::any_sparse_dense_cwise(x, dense, true, at).template as<T>();
}

/// a + b, dense, TensorFlow's SparseTensorDenseAdd; a and b have one shape. Indices may be in any order and repeat:
/// equal ones are added. The gradient goes to the values of a and to b.
///
/// Errors: InvalidArgument; in the step, naming position and shapes, for an index outside of the dense shape and for a
/// b of another shape.
template <AllowedFor<UnsortedSegmentSum> T>
Output<T> sparse_tensor_dense_add(const SparseOutput<T>& a, const Output<T>& b, const At& at = {}) {
  return Output<T>::unchecked(detail::any_sparse_tensor_dense_add(a, b, at));
}

}  // namespace dflow
