#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/kernels/cpu/linalg/normal_equations.hpp>
#include <dflow/ops/linalg/solve.hpp>

#include <algorithm>
#include <complex>
#include <limits>

namespace dflow {

namespace cpu {

/// The x of least norm that makes the norm of a * x - b least, by a complete orthogonal decomposition. Its pivots
/// count down to `threshold` of the largest. Preconditions: not empty, as many rows in b as in a.
template <class T>
OwnMatrix<T> solve_ls(const OwnMatrix<T>& a, const OwnMatrix<T>& b, double threshold);

}  // namespace cpu

template <class T>
struct Kernel<MatrixSolveLs, Cpu, T> {
  MatrixSolveLs::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return cpu::linalg_cost_ns(init, attrs.fast ? 2 : 6); }

  void operator()(KernelContext& context, const Tensor<T>& a, const Tensor<T>& b, const Tensor<double>& l2,
                  Tensor<T>& x) const {
    const auto in = cpu::matrices(a), right = cpu::matrices(b);
    const auto out = cpu::matrices(x);
    if (!(l2.scalar() >= 0)) context.fail(str_cat("l2_regularizer must be 0 or more, got ", l2.scalar()));
    if (x.num_elements() == 0) return;  // of however many matrices
    const std::int64_t m = in.rows(), n = in.columns(), least = std::min(m, n);
    const double flops = cpu::cube(m, n, least) * (attrs.fast ? 2 : 6) + 4 * cpu::cube(m, n, right.columns());
    const double threshold = std::numeric_limits<typename Eigen::NumTraits<T>::Real>::epsilon() * least;
    cpu::for_each_matrix<T>(context, in.count(), flops, [&](std::int64_t i) {
      if (in.are_empty() || right.are_empty()) {
        out[i].setZero();
        return;
      }
      const auto matrix = cpu::widened(in[i]), wanted = cpu::widened(right[i]);
      const auto solution = attrs.fast ? cpu::solve_normal_equations(matrix, wanted, l2.scalar())
                                       : cpu::solve_ls(matrix, wanted, threshold);
      if (solution.size() == 0) {
        context.fail(
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
            "l2_regularizer > 0.");
      }
      out[i] = solution.template cast<T>();
    });
  }
};

}  // namespace dflow
