#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/math/matmul.hpp>
#include <dflow/kernels/cpu/nn/conv2d.hpp>
#include <dflow/kernels/cpu/routines/nn/bias.hpp>
#include <dflow/ops/nn/fused.hpp>

#include <algorithm>

namespace dflow {

template <class T>
struct Kernel<FusedMatMul, Cpu, T> {
  FusedMatMul::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::product_cost_ns(init, attrs.transpose_a); }

  void operator()(KernelContext& context) const {
    const auto [m, n, k] = detail::product_sizes<T>(context, attrs.transpose_a, attrs.transpose_b);
    const Tensor<T>& bias = context.input<T>(2);
    if (bias.rank() != 1 || bias.dim(0) != n) detail::refuse_shapes(context);
    Tensor<T>& c = context.allocate_output<T>(0, {m, n});
    cpu::gemm<T>(context.pool(), attrs.transpose_a, attrs.transpose_b, m, n, k, context.input<T>(0).data(),
                 context.input<T>(1).data(), c.data(), {.bias = bias.data(), .relu = attrs.relu}, cpu_options(context));
  }
};

template <class T>
struct Kernel<FusedConv2D, Cpu, T> {
  FusedConv2D::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::conv2d_cost_ns(init.inputs[1], init.node.outputs[0]); }

  void operator()(KernelContext& context, const Tensor<T>& x, const Tensor<T>& filter, const Tensor<T>& bias,
                  Tensor<T>& y) const {
    if (y.num_elements() == 0) return;
    const cpu::CpuOptions options = cpu_options(context);
    if (x.num_elements() == 0) {
      std::fill(y.begin(), y.end(), T(0));
      const std::int64_t channels = bias.dim(0);
      return cpu::bias_add<T>(context.pool(), y.num_elements() / channels, channels, y.data(), bias.data(), y.data(),
                              attrs.relu, options);
    }
    cpu::conv2d<T>(context.pool(), detail::conv2d_shape(attrs.convolution(), x.shape(), filter.shape()), x.data(),
                   filter.data(), y.data(), {.bias = bias.data(), .relu = attrs.relu}, options);
  }
};

}  // namespace dflow
