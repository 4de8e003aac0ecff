#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/ops/linalg/decompose.hpp>

#include <complex>

namespace dflow {

namespace cpu {

/// Eigenvalues in ascending order; column i of `vectors` goes with value i.
template <class T>
struct EigFactors {
  Eigen::VectorXd values;
  OwnMatrix<T> vectors;  ///< empty unless asked for
  bool has_converged = false;
};

/// Decomposes the self-adjoint matrix with this lower triangle, which is not empty. The upper triangle is not read.
EigFactors<double> self_adjoint_eig(const OwnMatrix<double>& matrix, bool with_vectors);
EigFactors<std::complex<double>> self_adjoint_eig(const OwnMatrix<std::complex<double>>& matrix, bool with_vectors);

}  // namespace cpu

template <class T>
struct Kernel<SelfAdjointEig, Cpu, T> {
  SelfAdjointEig::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, attrs.compute_v ? 9 : 4.0 / 3); }

  void operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& e, Tensor<T>& v) const {
    const auto in = cpu::matrices(a);
    if (in.are_empty()) return;
    const std::int64_t n = in.rows();
    const double flops = cpu::cube(n, n, n) * (attrs.compute_v ? 9 : 4.0 / 3);
    cpu::for_each_matrix<T>(context, in.count(), flops, [&](std::int64_t i) {
      const auto factors = cpu::self_adjoint_eig(cpu::widened(in[i]), attrs.compute_v);
      if (!factors.has_converged) {
        context.fail("Self-adjoint eigen decomposition was not successful. The input might not be valid.");
      }
      Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>>(e.data() + i * n, n) = factors.values.template cast<T>();
      if (attrs.compute_v) cpu::matrices(v)[i] = factors.vectors.template cast<T>();
    });
  }
};

}  // namespace dflow
