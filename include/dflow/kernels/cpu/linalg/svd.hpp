#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/ops/linalg/decompose.hpp>

#include <Eigen/SVD>

#include <complex>
#include <limits>

namespace dflow {

template <class T>
struct Kernel<Svd, Cpu, T> {
  Svd::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, attrs.compute_uv ? 20 : 5); }

  void operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& s, Tensor<T>& u, Tensor<T>& v) const;
};

template <class T>
void Kernel<Svd, Cpu, T>::operator()(KernelContext& context, const Tensor<T>& a, Tensor<T>& s, Tensor<T>& u,
                                     Tensor<T>& v) const {
  using Matrix = cpu::OwnMatrix<T>;
  const auto in = cpu::matrices(a);
  if (s.num_elements() + u.num_elements() + v.num_elements() == 0) return;  // of however many matrices
  const std::int64_t m = in.rows(), n = in.columns(), k = std::min(m, n);
  const unsigned vectors =
      attrs.full_matrices ? Eigen::ComputeFullU | Eigen::ComputeFullV : Eigen::ComputeThinU | Eigen::ComputeThinV;
  const double flops = cpu::cube(m, n, k) * (attrs.compute_uv ? 20 : 5);
  cpu::for_each_matrix<T>(context, in.count(), flops, [&](std::int64_t i) {
    if (in.are_empty()) {
      if (!attrs.compute_uv) return;
      cpu::matrices(u)[i].setIdentity();
      cpu::matrices(v)[i].setIdentity();
      return;
    }
    const Matrix matrix = in[i];
    Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>> values(s.data() + i * k, k);
    if (!matrix.allFinite()) {
      const T nan(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::quiet_NaN());
      values.setConstant(nan);
      if (!attrs.compute_uv) return;
      cpu::matrices(u)[i].setConstant(nan);
      cpu::matrices(v)[i].setConstant(nan);
      return;
    }
    const Eigen::BDCSVD<Matrix> factor(matrix, attrs.compute_uv ? vectors : 0u);
    values = factor.singularValues().template cast<T>();
    if (!attrs.compute_uv) return;
    cpu::matrices(u)[i] = factor.matrixU();
    cpu::matrices(v)[i] = factor.matrixV();
  });
}

#if !defined(DFLOW_HEADER_ONLY)
// One unit for each: Eigen takes long to compile.
extern template struct Kernel<Svd, Cpu, float>;
extern template struct Kernel<Svd, Cpu, double>;
extern template struct Kernel<Svd, Cpu, std::complex<float>>;
extern template struct Kernel<Svd, Cpu, std::complex<double>>;
#endif

}  // namespace dflow
