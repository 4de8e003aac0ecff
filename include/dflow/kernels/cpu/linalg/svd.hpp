#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/ops/linalg/decompose.hpp>

#include <algorithm>
#include <complex>
#include <limits>

namespace dflow {

namespace cpu {

/// A matrix of [m,n] is u * diag(values) * v.adjoint(); values descend.
template <class T>
struct SvdFactors {
  Eigen::VectorXd values;
  OwnMatrix<T> u, v;
};

enum class SingularVectors {
  none,
  thin,  ///< u of [m,k] and v of [n,k], k the smaller of m and n
  full,  ///< u of [m,m] and v of [n,n]
};

/// Preconditions: not empty, all finite.
SvdFactors<double> svd(const OwnMatrix<double>& matrix, SingularVectors vectors);
SvdFactors<std::complex<double>> svd(const OwnMatrix<std::complex<double>>& matrix, SingularVectors vectors);

}  // namespace cpu

template <class T>
struct Kernel<Svd, Cpu, T> {
  Svd::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, attrs.compute_uv ? 20 : 5); }

  void operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& s, Tensor<T>& u, Tensor<T>& v) const {
    const auto in = cpu::matrices(a);
    if (s.num_elements() + u.num_elements() + v.num_elements() == 0) return;  // of however many matrices
    const std::int64_t m = in.rows(), n = in.columns(), k = std::min(m, n);
    const cpu::SingularVectors vectors = !attrs.compute_uv     ? cpu::SingularVectors::none
                                         : attrs.full_matrices ? cpu::SingularVectors::full
                                                               : cpu::SingularVectors::thin;
    const double flops = cpu::cube(m, n, k) * (attrs.compute_uv ? 20 : 5);
    cpu::for_each_matrix<T>(context, in.count(), flops, [&](std::int64_t i) {
      if (in.are_empty()) {
        if (!attrs.compute_uv) return;
        cpu::matrices(u)[i].setIdentity();
        cpu::matrices(v)[i].setIdentity();
        return;
      }
      const auto matrix = cpu::widened(in[i]);
      Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>> values(s.data() + i * k, k);
      if (!matrix.allFinite()) {
        const T nan(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::quiet_NaN());
        values.setConstant(nan);
        if (!attrs.compute_uv) return;
        cpu::matrices(u)[i].setConstant(nan);
        cpu::matrices(v)[i].setConstant(nan);
        return;
      }
      const auto factors = cpu::svd(matrix, vectors);
      values = factors.values.template cast<T>();
      if (!attrs.compute_uv) return;
      cpu::matrices(u)[i] = factors.u.template cast<T>();
      cpu::matrices(v)[i] = factors.v.template cast<T>();
    });
  }
};

}  // namespace dflow
