#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/ops/linalg/decompose.hpp>

#include <Eigen/QR>

#include <complex>

namespace dflow {

template <class T>
struct Kernel<Qr, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, 4); }

  void operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& q, Tensor<T>& r) const;
};

template <class T>
void Kernel<Qr, Cpu, T>::operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& q, Tensor<T>& r) const {
  using Matrix = cpu::OwnMatrix<T>;
  const auto in = cpu::matrices(a);
  const auto out_q = cpu::matrices(q), out_r = cpu::matrices(r);
  if (q.num_elements() + r.num_elements() == 0) return;  // of however many matrices
  const std::int64_t m = in.rows(), n = in.columns(), k = out_q.columns();
  cpu::for_each_matrix<T>(context, in.count(), 4 * cpu::cube(m, n, std::min(m, n)), [&](std::int64_t i) {
    if (in.are_empty()) {
      out_q[i].setIdentity();
      return;
    }
    const Eigen::HouseholderQR<Matrix> factor{Matrix(in[i])};
    Matrix basis = Matrix::Identity(m, k);
    basis.applyOnTheLeft(factor.householderQ());
    out_q[i] = basis;
    Matrix upper = Matrix::Zero(k, n);
    const std::int64_t rows = std::min(m, n);
    upper.topRows(rows) = factor.matrixQR().topRows(rows).template triangularView<Eigen::Upper>();
    out_r[i] = upper;
  });
}

#if !defined(DFLOW_HEADER_ONLY)
// One unit for each: Eigen takes long to compile.
extern template struct Kernel<Qr, Cpu, float>;
extern template struct Kernel<Qr, Cpu, double>;
extern template struct Kernel<Qr, Cpu, std::complex<float>>;
extern template struct Kernel<Qr, Cpu, std::complex<double>>;
#endif

}  // namespace dflow
