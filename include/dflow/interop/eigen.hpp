#pragma once

/// Public: tensors as Eigen sees them, and Eigen's matrices as tensors. Not part of <dflow/dflow.hpp>: a program that
/// includes it has Eigen 3.4 on the include path. Memory that Eigen and dflow share is row-major, as tensors are.

#include <dflow/base/str_cat.hpp>
#include <dflow/core/tensor.hpp>

#include <Eigen/Core>

#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace dflow::eigen {

/// A matrix in the layout of a tensor of rank 2: a matrix that is moved into a tensor is not copied.
template <Element T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <Element T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

namespace detail {

inline void require_rank(const AnyTensor& tensor, int rank) {
  if (tensor.rank() == rank) return;
  throw_error(Status::invalid_argument(
      str_cat("a tensor of shape ", tensor.shape().to_string(), " is no ", rank == 1 ? "vector" : "matrix")));
}

template <class Dense>
Shape shape_of(const Dense& dense) {
  if constexpr (Dense::IsVectorAtCompileTime) {
    return {static_cast<std::int64_t>(dense.size())};
  } else {
    return {static_cast<std::int64_t>(dense.rows()), static_cast<std::int64_t>(dense.cols())};
  }
}

/// A matrix or array that holds its elements in the order of a tensor.
template <class Dense>
concept OwnsRowMajor = std::is_base_of_v<Eigen::PlainObjectBase<Dense>, Dense> &&
                       (static_cast<bool>(Dense::IsVectorAtCompileTime) || static_cast<bool>(Dense::IsRowMajor));

}  // namespace detail

/// The elements of a tensor of rank 2 as a matrix, without a copy. A map of a const tensor is read-only.
///
/// ```cpp
/// df::eigen::matrix(y) = df::eigen::matrix(a) * df::eigen::matrix(b);
/// ```
/// The map is valid as long as the tensor's elements are. A handle to them has to stay, so a temporary is refused.
///
/// Errors: InvalidArgument if the tensor has another rank.
template <Element T>
Eigen::Map<Matrix<T>> matrix(Tensor<T>& tensor) {
  detail::require_rank(tensor, 2);
  return {tensor.data(), tensor.dim(0), tensor.dim(1)};
}
template <Element T>
Eigen::Map<const Matrix<T>> matrix(const Tensor<T>& tensor) {
  detail::require_rank(tensor, 2);
  return {tensor.data(), tensor.dim(0), tensor.dim(1)};
}
template <Element T>
void matrix(const Tensor<T>&&) = delete;

/// The same for rank 1, as a column.
template <Element T>
Eigen::Map<Vector<T>> vector(Tensor<T>& tensor) {
  detail::require_rank(tensor, 1);
  return {tensor.data(), tensor.dim(0)};
}
template <Element T>
Eigen::Map<const Vector<T>> vector(const Tensor<T>& tensor) {
  detail::require_rank(tensor, 1);
  return {tensor.data(), tensor.dim(0)};
}
template <Element T>
void vector(const Tensor<T>&&) = delete;

/// The value of an expression, in memory of the tensor's own: of rank 1 if Eigen knows it as a row or column when it
/// compiles, else of rank 2. Any storage order gives the same values.
template <class Derived>
  requires Element<typename Derived::Scalar>
Tensor<typename Derived::Scalar> tensor(const Eigen::DenseBase<Derived>& dense) {
  using T = typename Derived::Scalar;
  Tensor<T> result(detail::shape_of(dense.derived()));
  if constexpr (Derived::IsVectorAtCompileTime) {
    // A vector's own orientation: Eigen would take a row for a matrix of one column.
    using Plain = Eigen::Matrix<T, Derived::RowsAtCompileTime, Derived::ColsAtCompileTime,
                                Derived::RowsAtCompileTime == 1 ? Eigen::RowMajor : Eigen::ColMajor>;
    Eigen::Map<Plain>(result.data(), dense.rows(), dense.cols()) = dense.derived().matrix();
  } else {
    Eigen::Map<Matrix<T>>(result.data(), dense.rows(), dense.cols()) = dense.derived().matrix();
  }
  return result;
}

/// A matrix, vector or array that is given away. The tensor takes over its memory if it is row-major or a vector. A
/// column-major matrix is copied into row-major order.
///
/// ```cpp
/// df::eigen::Matrix<float> dense = ...;
/// df::Tensor<float> weights = df::eigen::tensor(std::move(dense));
/// ```
template <class Dense>
  requires(!std::is_reference_v<Dense> && !std::is_const_v<Dense> && detail::OwnsRowMajor<Dense> &&
           Element<typename Dense::Scalar>)
Tensor<typename Dense::Scalar> tensor(Dense&& dense) {
  using T = typename Dense::Scalar;
  const Shape shape = detail::shape_of(dense);
  if (shape.num_elements() == 0) return Tensor<T>(shape);
  auto owner = std::make_unique<Dense>(std::move(dense));
  const std::span<T> elements(owner->data(), static_cast<std::size_t>(owner->size()));
  return adopt<T>(elements, shape, [kept = std::move(owner)]() mutable { kept.reset(); });
}

}  // namespace dflow::eigen
