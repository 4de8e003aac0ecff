#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/ops/linalg/solve.hpp>

#include <Eigen/Cholesky>
#include <Eigen/QR>

#include <complex>

namespace dflow {

template <class T>
struct Kernel<MatrixSolveLs, Cpu, T> {
  MatrixSolveLs::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, attrs.fast ? 2 : 6); }

  void operator()(KernelContext& context, const Tensor<T>& a, const Tensor<T>& b, const Tensor<double>& l2,
                  Tensor<T>& x) const;
};

template <class T>
void Kernel<MatrixSolveLs, Cpu, T>::operator()(KernelContext& context, const Tensor<T>& a, const Tensor<T>& b,
                                               const Tensor<double>& l2, Tensor<T>& x) const {
  using Matrix = cpu::OwnMatrix<T>;
  const auto in = cpu::matrices(a), right = cpu::matrices(b);
  const auto out = cpu::matrices(x);
  if (!(l2.scalar() >= 0)) context.fail(str_cat("l2_regularizer must be 0 or more, got ", l2.scalar()));
  if (x.num_elements() == 0) return;  // of however many matrices
  const std::int64_t m = in.rows(), n = in.columns();
  const double flops = cpu::cube(m, n, std::min(m, n)) * (attrs.fast ? 2 : 6) + 4 * cpu::cube(m, n, right.columns());
  cpu::for_each_matrix<T>(context, in.count(), flops, [&](std::int64_t i) {
    if (in.are_empty() || right.are_empty()) {
      out[i].setZero();
      return;
    }
    const Matrix matrix = in[i], wanted = right[i];
    if (!attrs.fast) {
      out[i] = Matrix(matrix.completeOrthogonalDecomposition().solve(wanted));
      return;
    }
    const bool is_wide = m < n;
    Matrix gram = is_wide ? Matrix(matrix * matrix.adjoint()) : Matrix(matrix.adjoint() * matrix);
    gram.diagonal().array() += T(static_cast<typename Eigen::NumTraits<T>::Real>(l2.scalar()));
    const Eigen::LLT<Matrix> factor(gram);
    if (factor.info() != Eigen::Success) {
      context.fail(
          "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
          "l2_regularizer > 0.");
    }
    out[i] =
        is_wide ? Matrix(matrix.adjoint() * factor.solve(wanted)) : Matrix(factor.solve(matrix.adjoint() * wanted));
  });
}

#if !defined(DFLOW_HEADER_ONLY)
// One unit for each: Eigen takes long to compile.
extern template struct Kernel<MatrixSolveLs, Cpu, float>;
extern template struct Kernel<MatrixSolveLs, Cpu, double>;
extern template struct Kernel<MatrixSolveLs, Cpu, std::complex<float>>;
extern template struct Kernel<MatrixSolveLs, Cpu, std::complex<double>>;
#endif

}  // namespace dflow
