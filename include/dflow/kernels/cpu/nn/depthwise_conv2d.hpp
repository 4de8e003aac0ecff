#pragma once

#include <dflow/kernels/cpu/nn/conv2d.hpp>
#include <dflow/ops/nn/depthwise_conv2d.hpp>

#include <algorithm>

namespace dflow {

namespace detail {

/// Nanoseconds of the multiplications of a depthwise convolution or of one of its gradients.
inline double depthwise_cost_ns(const OutputInfo& filter, const OutputInfo& out) {
  const double taps = filter.shape.has_rank() && filter.shape.dim(0) > 0 && filter.shape.dim(1) > 0
                          ? static_cast<double>(filter.shape.dim(0)) * static_cast<double>(filter.shape.dim(1))
                          : 9;
  return 2000 + estimated_elements(out, 1e4) * taps * 0.1;
}

}  // namespace detail

template <class T>
struct Kernel<DepthwiseConv2dNative, Cpu, T> {
  Conv2DAttrs attrs;

  double cost_ns(const KernelInit& init) const {
    return detail::depthwise_cost_ns(init.inputs[1], init.node.outputs[0]);
  }

  void operator()(KernelContext& context, const Tensor<T>& x, const Tensor<T>& filter, Tensor<T>& y) const {
    if (y.num_elements() == 0) return;
    if (x.num_elements() == 0) return static_cast<void>(std::fill(y.begin(), y.end(), T(0.0f)));
    cpu::conv2d<T>(context.pool(), detail::depthwise_conv2d_shape(attrs, x.shape(), filter.shape()), x.data(),
                   filter.data(), y.data(), {}, cpu_options(context));
  }
};

template <class T>
struct Kernel<DepthwiseConv2dNativeBackpropInput, Cpu, T> {
  Conv2DAttrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::depthwise_cost_ns(init.inputs[1], init.inputs[2]); }

  void operator()(KernelContext& context, const Tensor<std::int32_t>&, const Tensor<T>& filter,
                  const Tensor<T>& out_backprop, Tensor<T>& dx) const {
    if (dx.num_elements() == 0) return;
    if (out_backprop.num_elements() == 0) return static_cast<void>(std::fill(dx.begin(), dx.end(), T(0.0f)));
    cpu::conv2d_backward_input<T>(context.pool(), detail::depthwise_conv2d_shape(attrs, dx.shape(), filter.shape()),
                                  filter.data(), out_backprop.data(), dx.data(), cpu_options(context));
  }
};

template <class T>
struct Kernel<DepthwiseConv2dNativeBackpropFilter, Cpu, T> {
  Conv2DAttrs attrs;

  double cost_ns(const KernelInit& init) const {
    return detail::depthwise_cost_ns(init.node.outputs[0], init.inputs[2]);
  }

  void operator()(KernelContext& context, const Tensor<T>& x, const Tensor<std::int32_t>&,
                  const Tensor<T>& out_backprop, Tensor<T>& dfilter) const {
    if (dfilter.num_elements() == 0) return;
    if (out_backprop.num_elements() == 0) return static_cast<void>(std::fill(dfilter.begin(), dfilter.end(), T(0.0f)));
    cpu::conv2d_backward_filter<T>(context.pool(), detail::depthwise_conv2d_shape(attrs, x.shape(), dfilter.shape()),
                                   x.data(), out_backprop.data(), dfilter.data(), cpu_options(context));
  }
};

}  // namespace dflow
