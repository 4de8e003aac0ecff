#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/ops/linalg/decompose.hpp>

#include <algorithm>
#include <complex>

namespace dflow {

namespace cpu {

/// A matrix of [m,n] is q * r. q of [m,k] has orthonormal columns; k is the smaller of m and n, or m. r of [k,n] is
/// zero below its diagonal.
template <class T>
struct QrFactors {
  OwnMatrix<T> q, r;
};

/// Precondition: not empty.
QrFactors<double> qr(const OwnMatrix<double>& matrix, std::int64_t k);
QrFactors<std::complex<double>> qr(const OwnMatrix<std::complex<double>>& matrix, std::int64_t k);

}  // namespace cpu

template <class T>
struct Kernel<Qr, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, 4); }

  void operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& q, Tensor<T>& r) const {
    const auto in = cpu::matrices(a);
    const auto out_q = cpu::matrices(q), out_r = cpu::matrices(r);
    if (q.num_elements() + r.num_elements() == 0) return;  // of however many matrices
    const std::int64_t m = in.rows(), n = in.columns();
    cpu::for_each_matrix<T>(context, in.count(), 4 * cpu::cube(m, n, std::min(m, n)), [&](std::int64_t i) {
      if (in.are_empty()) {
        out_q[i].setIdentity();
        return;
      }
      const auto factors = cpu::qr(cpu::widened(in[i]), out_q.columns());
      out_q[i] = factors.q.template cast<T>();
      out_r[i] = factors.r.template cast<T>();
    });
  }
};

}  // namespace dflow
