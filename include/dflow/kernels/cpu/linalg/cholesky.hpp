#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/ops/linalg/decompose.hpp>

#include <Eigen/Cholesky>

#include <complex>

namespace dflow {

template <class T>
struct Kernel<Cholesky, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, 1.0 / 3); }

  void operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& l) const;
};

template <class T>
void Kernel<Cholesky, Cpu, T>::operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& l) const {
  const auto in = cpu::matrices(a);
  const auto out = cpu::matrices(l);
  if (in.are_empty()) return;
  const std::int64_t n = in.rows();
  cpu::for_each_matrix<T>(context, in.count(), cpu::cube(n, n, n) / 3, [&](std::int64_t i) {
    const Eigen::LLT<cpu::OwnMatrix<T>> factor{cpu::OwnMatrix<T>(in[i])};
    if (!cpu::is_positive_definite(factor)) {
      context.fail("Cholesky decomposition was not successful. The input might not be valid.");
    }
    out[i] = cpu::OwnMatrix<T>(factor.matrixL());
  });
}

#if defined(DFLOW_LINALG_UNITS)
// In the unit of the element type's solvers.
extern template struct Kernel<Cholesky, Cpu, float>;
extern template struct Kernel<Cholesky, Cpu, double>;
extern template struct Kernel<Cholesky, Cpu, std::complex<float>>;
extern template struct Kernel<Cholesky, Cpu, std::complex<double>>;
#endif

}  // namespace dflow
