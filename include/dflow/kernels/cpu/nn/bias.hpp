#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/nn/bias.hpp>
#include <dflow/ops/nn/bias.hpp>

namespace dflow {

template <class T>
struct Kernel<BiasAdd, Cpu, T> {
  double cost_ns(const KernelInit& init) const {
    return 200 + estimated_elements(init.node.outputs[0]) * sizeof(T) * 0.1;
  }

  void operator()(KernelContext& context) const {
    const Tensor<T>& x = context.input<T>(0);
    const Tensor<T>& bias = context.input<T>(1);
    if (x.rank() < 2 || bias.rank() != 1 || bias.dim(0) != x.dim(x.rank() - 1)) detail::refuse_shapes(context);
    const std::int64_t channels = bias.dim(0);
    const T* from = x.data();
    Tensor<T>& y = context.forward_or_allocate<T>(0, 0, x.shape());
    if (y.num_elements() == 0) return;
    cpu::bias_add<T>(context.pool(), y.num_elements() / channels, channels, from, bias.data(), y.data(), false,
                     cpu_options(context));
  }
};

template <class T>
struct Kernel<BiasAddGrad, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return 200 + estimated_elements(init.inputs[0]) * sizeof(T) * 0.1; }

  void operator()(KernelContext& context) const {
    const Tensor<T>& dy = context.input<T>(0);
    if (dy.rank() < 2) detail::refuse_shapes(context);
    const std::int64_t channels = dy.dim(dy.rank() - 1);
    Tensor<T>& dbias = context.allocate_output<T>(0, {channels});
    if (channels == 0) return;
    cpu::bias_add_backward<T>(context.pool(), dy.num_elements() / channels, channels, dy.data(), dbias.data(),
                              cpu_options(context));
  }
};

}  // namespace dflow
