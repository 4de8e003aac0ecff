#pragma once

#include <dflow/core/tensor.hpp>

#include <initializer_list>
#include <utility>

namespace dflow {

namespace detail {
/// Throws InvalidArgument unless the parts are those of one sparse tensor.
void check_sparse_tensor(const Tensor<std::int64_t>& indices, const AnyTensor& values,
                         const Tensor<std::int64_t>& dense_shape);
/// [rank], the extents of the shape.
Tensor<std::int64_t> extents_of(const Shape& shape);
}  // namespace detail

/// A sparse tensor as a value, as TensorFlow's SparseTensorValue: n elements of a tensor of rank r, with the place of
/// each. All others are 0, or empty strings.
///
/// ```cpp
/// df::SparseTensor<float> x({{0, 3}, {2, 1}}, {5, 7}, {3, 4});   // x[0, 3] = 5 and x[2, 1] = 7, of shape [3, 4]
/// auto ids = df::sparse_placeholder<float>(graph, {3, 4});
/// df::SparseTensor<float> sorted = session.run({{ids, x}}, df::sparse_reorder(ids));
/// ```
/// Indices may be in any order, and an index may repeat. The ops that want them in row-major order say so, and
/// `sparse_reorder` gives them in that order. A copy is a handle to the same elements.
///
/// Thread safety: as for Tensor.
/// Errors: InvalidArgument with the shapes if they do not fit, for a negative extent, and with the position for an
/// index outside of the shape. A fetched sparse tensor is as the step made it, without these checks.
template <Element T>
class SparseTensor {
 public:
  using value_type = T;

  /// Uninitialised, like an empty Tensor.
  SparseTensor() noexcept = default;
  /// indices [n, r], values [n], dense_shape [r].
  SparseTensor(Tensor<std::int64_t> indices, Tensor<T> values, Tensor<std::int64_t> dense_shape)
      : indices_(std::move(indices)), values_(std::move(values)), dense_shape_(std::move(dense_shape)) {
    detail::check_sparse_tensor(indices_, values_, dense_shape_);
  }
  /// The same with values and extents in braces.
  SparseTensor(Tensor<std::int64_t> indices, std::initializer_list<T> values, const Shape& dense_shape)
      : SparseTensor(std::move(indices), Tensor<T>(Shape{static_cast<std::int64_t>(values.size())}, values),
                     detail::extents_of(dense_shape)) {}

  /// From the tensors of its three edges, which are taken; nothing is checked but their element types.
  static SparseTensor unchecked(AnyTensor* parts) {
    SparseTensor sparse;
    sparse.indices_ = Tensor<std::int64_t>(std::move(parts[0]));
    sparse.values_ = Tensor<T>(std::move(parts[1]));
    sparse.dense_shape_ = Tensor<std::int64_t>(std::move(parts[2]));
    return sparse;
  }

  const Tensor<std::int64_t>& indices() const noexcept { return indices_; }          ///< [n, r]
  const Tensor<T>& values() const noexcept { return values_; }                       ///< [n]
  const Tensor<std::int64_t>& dense_shape() const noexcept { return dense_shape_; }  ///< [r]

 private:
  Tensor<std::int64_t> indices_;
  Tensor<T> values_;
  Tensor<std::int64_t> dense_shape_;
};

}  // namespace dflow
