#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/math/gemm.hpp>
#include <dflow/kernels/shared/product_sizes.hpp>
#include <dflow/ops/math/matmul.hpp>

namespace dflow {

namespace detail {

inline double product_cost_ns(const KernelInit& init, bool transpose_a) {
  const PartialShape& a = init.inputs[0].shape;
  const std::int64_t inner = a.has_rank() ? a.dim(transpose_a ? 0 : 1) : dynamic;
  return 500 + estimated_elements(init.node.outputs[0]) * static_cast<double>(inner == dynamic ? 128 : inner) * 0.02;
}

}  // namespace detail

template <class T>
struct Kernel<MatMul, Cpu, T> {
  MatMul::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::product_cost_ns(init, attrs.transpose_a); }

  void operator()(KernelContext& context) const {
    const auto [m, n, k] = detail::product_sizes<T>(context, attrs.transpose_a, attrs.transpose_b);
    Tensor<T>& c = context.allocate_output<T>(0, {m, n});
    cpu::gemm<T>(context.pool(), attrs.transpose_a, attrs.transpose_b, m, n, k, context.input<T>(0).data(),
                 context.input<T>(1).data(), c.data(), {}, cpu_options(context));
  }
};

}  // namespace dflow
