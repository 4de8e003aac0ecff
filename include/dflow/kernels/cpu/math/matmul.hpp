#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/math/gemm.hpp>
#include <dflow/kernels/inferred_shape.hpp>
#include <dflow/ops/math/matmul.hpp>

namespace dflow {

template <class T>
struct Kernel<MatMul, Cpu, T> {
  MatMul::Attrs attrs;

  double cost_ns(const KernelInit& init) const {
    const PartialShape& a = init.inputs[0].shape;
    const std::int64_t inner = a.has_rank() ? a.dim(attrs.transpose_a ? 0 : 1) : dynamic;
    return 500 + estimated_elements(init.node.outputs[0]) * static_cast<double>(inner == dynamic ? 128 : inner) * 0.02;
  }

  void operator()(KernelContext& context) const {
    const Tensor<T>& a = context.input<T>(0);
    const Tensor<T>& b = context.input<T>(1);
    if (a.rank() != 2 || b.rank() != 2) detail::refuse_shapes(context);
    const std::int64_t m = a.dim(attrs.transpose_a ? 1 : 0), k = a.dim(attrs.transpose_a ? 0 : 1);
    const std::int64_t n = b.dim(attrs.transpose_b ? 0 : 1);
    if (k != b.dim(attrs.transpose_b ? 1 : 0)) detail::refuse_shapes(context);
    Tensor<T>& c = context.allocate_output<T>(0, {m, n});
    cpu::gemm<T>(context.pool(), attrs.transpose_a, attrs.transpose_b, m, n, k, a.data(), b.data(), c.data(), {},
                 cpu_options(context));
  }
};

}  // namespace dflow
