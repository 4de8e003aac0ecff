#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/ops/linalg/solve.hpp>

#include <Eigen/LU>

#include <cmath>
#include <complex>

namespace dflow {

namespace cpu {

/// Fails if a pivot is 0 or no number.
template <class Matrix>
void check_invertible(const KernelContext& context, const Matrix& factor) {
  for (Eigen::Index i = 0; i < factor.rows(); ++i) {
    if (!(std::abs(factor(i, i)) > 0)) context.fail("Input matrix is not invertible.");
  }
}

}  // namespace cpu

template <class T>
struct Kernel<MatrixInverse, Cpu, T> {
  MatrixInverse::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, 2); }

  void operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& y) const;
};

template <class T>
void Kernel<MatrixInverse, Cpu, T>::operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& y) const {
  using Matrix = cpu::OwnMatrix<T>;
  const auto in = cpu::matrices(a);
  const auto out = cpu::matrices(y);
  if (in.are_empty()) return;
  const std::int64_t n = in.rows();
  cpu::for_each_matrix<T>(context, in.count(), 2 * cpu::cube(n, n, n), [&](std::int64_t i) {
    const Eigen::PartialPivLU<Matrix> factor{attrs.adjoint ? Matrix(in[i].adjoint()) : Matrix(in[i])};
    cpu::check_invertible(context, factor.matrixLU());
    out[i] = Matrix(factor.inverse());
  });
}

template <class T>
struct Kernel<MatrixDeterminant, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, 2.0 / 3); }

  void operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& y) const;
};

template <class T>
void Kernel<MatrixDeterminant, Cpu, T>::operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& y) const {
  using Matrix = cpu::OwnMatrix<T>;
  const auto in = cpu::matrices(a);
  const std::int64_t n = in.rows();
  cpu::for_each_matrix<T>(context, in.count(), cpu::cube(n, n, n) * 2 / 3, [&](std::int64_t i) {
    y.data()[i] = n == 0 ? T(1) : Eigen::PartialPivLU<Matrix>(Matrix(in[i])).determinant();
  });
}

template <class T>
struct Kernel<MatrixSolve, Cpu, T> {
  MatrixSolve::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, 2); }

  void operator()(KernelContext& context, const Tensor<T>& a, const Tensor<T>& b, Tensor<T>& x) const;
};

template <class T>
void Kernel<MatrixSolve, Cpu, T>::operator()(KernelContext& context, const Tensor<T>& a, const Tensor<T>& b,
                                             Tensor<T>& x) const {
  using Matrix = cpu::OwnMatrix<T>;
  const auto in = cpu::matrices(a), right = cpu::matrices(b);
  const auto out = cpu::matrices(x);
  if (right.are_empty()) return;
  const std::int64_t n = in.rows();
  const double flops = cpu::cube(n, n, n) * 2 / 3 + 2 * cpu::cube(n, n, right.columns());
  cpu::for_each_matrix<T>(context, in.count(), flops, [&](std::int64_t i) {
    const Eigen::PartialPivLU<Matrix> factor{attrs.adjoint ? Matrix(in[i].adjoint()) : Matrix(in[i])};
    cpu::check_invertible(context, factor.matrixLU());
    out[i] = Matrix(factor.solve(Matrix(right[i])));
  });
}

template <class T>
struct Kernel<MatrixTriangularSolve, Cpu, T> {
  MatrixTriangularSolve::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, 1); }

  void operator()(KernelContext& context, const Tensor<T>& a, const Tensor<T>& b, Tensor<T>& x) const;
};

template <class T>
void Kernel<MatrixTriangularSolve, Cpu, T>::operator()(KernelContext& context, const Tensor<T>& a, const Tensor<T>& b,
                                                       Tensor<T>& x) const {
  using Matrix = cpu::OwnMatrix<T>;
  const auto in = cpu::matrices(a), right = cpu::matrices(b);
  const auto out = cpu::matrices(x);
  if (right.are_empty()) return;
  const std::int64_t n = in.rows();
  cpu::for_each_matrix<T>(context, in.count(), cpu::cube(n, n, right.columns()), [&](std::int64_t i) {
    const Matrix matrix = attrs.adjoint ? Matrix(in[i].adjoint()) : Matrix(in[i]);
    cpu::check_invertible(context, matrix);
    Matrix solution = right[i];
    if (attrs.lower != attrs.adjoint) {
      matrix.template triangularView<Eigen::Lower>().solveInPlace(solution);
    } else {
      matrix.template triangularView<Eigen::Upper>().solveInPlace(solution);
    }
    out[i] = solution;
  });
}

#if defined(DFLOW_LINALG_UNITS)
// One unit for each: Eigen takes long to compile.
extern template struct Kernel<MatrixInverse, Cpu, float>;
extern template struct Kernel<MatrixInverse, Cpu, double>;
extern template struct Kernel<MatrixInverse, Cpu, std::complex<float>>;
extern template struct Kernel<MatrixInverse, Cpu, std::complex<double>>;
extern template struct Kernel<MatrixDeterminant, Cpu, float>;
extern template struct Kernel<MatrixDeterminant, Cpu, double>;
extern template struct Kernel<MatrixDeterminant, Cpu, std::complex<float>>;
extern template struct Kernel<MatrixDeterminant, Cpu, std::complex<double>>;
extern template struct Kernel<MatrixSolve, Cpu, float>;
extern template struct Kernel<MatrixSolve, Cpu, double>;
extern template struct Kernel<MatrixSolve, Cpu, std::complex<float>>;
extern template struct Kernel<MatrixSolve, Cpu, std::complex<double>>;
extern template struct Kernel<MatrixTriangularSolve, Cpu, float>;
extern template struct Kernel<MatrixTriangularSolve, Cpu, double>;
extern template struct Kernel<MatrixTriangularSolve, Cpu, std::complex<float>>;
extern template struct Kernel<MatrixTriangularSolve, Cpu, std::complex<double>>;
#endif

}  // namespace dflow
