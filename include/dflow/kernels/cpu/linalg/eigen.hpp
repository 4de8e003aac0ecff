#pragma once

/// The library's door to Eigen. In the compiled library its templates have a namespace of their own, which the build
/// gives them (`Eigen=dflow_eigen`). Otherwise a program that uses Eigen with other compiler flags would share their
/// instances, laid out for other registers.

#include <Eigen/Core>

#include <dflow/kernels/cpu/cpu_kernel.hpp>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

namespace dflow::cpu {

template <class T>
using RowMajorMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// A kernel's own copy of a matrix. All copies are aligned alike, so that sums do not depend on the tensor's address.
template <class T>
using OwnMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

/// The type in which decompositions compute, for any element type. Results are rounded once, and each of Eigen's
/// decompositions takes long to compile.
template <class T>
using Wide = std::conditional_t<is_complex_element<T>, std::complex<double>, double>;
template <class Matrix>
OwnMatrix<Wide<typename Matrix::Scalar>> widened(const Matrix& matrix) {
  return matrix.template cast<Wide<typename Matrix::Scalar>>();
}

/// The matrices in the last two dimensions of a tensor.
template <class T, class Element = std::remove_const_t<T>>
class Matrices {
 public:
  using Map =
      Eigen::Map<std::conditional_t<std::is_const_v<T>, const RowMajorMatrix<Element>, RowMajorMatrix<Element>>>;

  Matrices(T* data, const Shape& shape)
      : data_(data),
        rows_(shape[shape.rank() - 2]),
        columns_(shape[shape.rank() - 1]),
        count_(shape.num_elements(0, shape.rank() - 2)) {}

  std::int64_t count() const { return count_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  bool are_empty() const { return rows_ == 0 || columns_ == 0; }
  Map operator[](std::int64_t i) const { return Map(data_ + i * rows_ * columns_, rows_, columns_); }

 private:
  T* data_;
  std::int64_t rows_, columns_, count_;
};

template <class T>
Matrices<const T> matrices(const Tensor<T>& tensor) {
  return {tensor.data(), tensor.shape()};
}
template <class T>
Matrices<T> matrices(Tensor<T>& tensor) {
  return {tensor.data(), tensor.shape()};
}

/// The product of three extents, for costs.
inline double cube(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

/// Calls body(i) for each of `count` matrices, among the pool's threads if that pays; each takes `flops`.
template <class T, class Body>
void for_each_matrix(KernelContext& context, std::int64_t count, double flops, const Body& body) {
  const double ns = 500 + flops * (is_complex_element<T> ? 2.0 : 0.5);
  context.pool().parallel_for(count, ns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

/// Whether Eigen's LLT found a matrix positive definite: it stops at pivots of 0 or less, which NaN and inf are not.
template <class Factor>
bool is_positive_definite(const Factor& factor) {
  if (factor.info() != Eigen::Success) return false;
  const auto pivots = factor.matrixLLT().diagonal().real().array();
  return pivots.isFinite().all() && (pivots > 0).all();
}

/// The time for `flops` times the cube of the matrices' extents on input 0, as far as the extents are known.
inline double linalg_cost_ns(const KernelInit& init, double flops) {
  const PartialShape& a = init.inputs[0].shape;
  if (!a.has_rank() || a.rank() < 2) return 10'000;
  const auto extent = [&](int i) { return a[i] == dynamic ? 32.0 : static_cast<double>(a[i]); };
  const double m = extent(a.rank() - 2), n = extent(a.rank() - 1);
  return 1000 + estimated_elements(init.inputs[0]) * (50 + flops * 0.5 * std::min(m, n));
}

}  // namespace dflow::cpu
