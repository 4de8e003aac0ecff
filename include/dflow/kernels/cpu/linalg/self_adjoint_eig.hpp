#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/ops/linalg/decompose.hpp>

#include <Eigen/Eigenvalues>

#include <complex>

namespace dflow {

template <class T>
struct Kernel<SelfAdjointEig, Cpu, T> {
  SelfAdjointEig::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, attrs.compute_v ? 9 : 4.0 / 3); }

  void operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& e, Tensor<T>& v) const;
};

template <class T>
void Kernel<SelfAdjointEig, Cpu, T>::operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& e,
                                                Tensor<T>& v) const {
  using Matrix = cpu::OwnMatrix<T>;
  const auto in = cpu::matrices(a);
  if (in.are_empty()) return;
  const std::int64_t n = in.rows();
  const double flops = cpu::cube(n, n, n) * (attrs.compute_v ? 9 : 4.0 / 3);
  cpu::for_each_matrix<T>(context, in.count(), flops, [&](std::int64_t i) {
    const Matrix matrix = in[i];
    const bool is_finite = Matrix(matrix.template triangularView<Eigen::Lower>()).allFinite();
    const Eigen::SelfAdjointEigenSolver<Matrix> factor =
        is_finite ? Eigen::SelfAdjointEigenSolver<Matrix>(
                        matrix, attrs.compute_v ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly)
                  : Eigen::SelfAdjointEigenSolver<Matrix>();
    if (!is_finite || factor.info() != Eigen::Success) {
      context.fail("Self-adjoint eigen decomposition was not successful. The input might not be valid.");
    }
    Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>>(e.data() + i * n, n) = factor.eigenvalues().template cast<T>();
    if (attrs.compute_v) cpu::matrices(v)[i] = factor.eigenvectors();
  });
}

#if !defined(DFLOW_HEADER_ONLY)
// One unit for each: Eigen takes long to compile.
extern template struct Kernel<SelfAdjointEig, Cpu, float>;
extern template struct Kernel<SelfAdjointEig, Cpu, double>;
extern template struct Kernel<SelfAdjointEig, Cpu, std::complex<float>>;
extern template struct Kernel<SelfAdjointEig, Cpu, std::complex<double>>;
#endif

}  // namespace dflow
