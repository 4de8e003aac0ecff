#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/image/resize.hpp>

namespace dflow {

namespace cpu {
/// The kernels of the resizes and of their gradients.
void resize(KernelContext& context, ResizeMethod method, const ResizeAttrs& attrs);
void resize_gradient(KernelContext& context, ResizeMethod method, const ResizeAttrs& attrs);
}  // namespace cpu

namespace detail {

inline double resize_cost_ns(const KernelInit& init) {
  return 1000 + 3 * (estimated_elements(init.inputs[0]) + estimated_elements(init.node.outputs[0]));
}

template <ResizeMethod method>
struct ResizeKernel {
  ResizeAttrs attrs;
  double cost_ns(const KernelInit& init) const { return resize_cost_ns(init); }
  void operator()(KernelContext& context) const { cpu::resize(context, method, attrs); }
};
template <ResizeMethod method>
struct ResizeGradientKernel {
  ResizeAttrs attrs;
  double cost_ns(const KernelInit& init) const { return resize_cost_ns(init); }
  void operator()(KernelContext& context) const { cpu::resize_gradient(context, method, attrs); }
};

}  // namespace detail

template <>
struct Kernel<ResizeBilinear, Cpu> : detail::ResizeKernel<ResizeMethod::bilinear> {};
template <>
struct Kernel<ResizeBicubic, Cpu> : detail::ResizeKernel<ResizeMethod::bicubic> {};
template <>
struct Kernel<ResizeNearestNeighbor, Cpu> : detail::ResizeKernel<ResizeMethod::nearest_neighbor> {};
template <>
struct Kernel<ResizeBilinearGrad, Cpu> : detail::ResizeGradientKernel<ResizeMethod::bilinear> {};
template <>
struct Kernel<ResizeBicubicGrad, Cpu> : detail::ResizeGradientKernel<ResizeMethod::bicubic> {};
template <>
struct Kernel<ResizeNearestNeighborGrad, Cpu> : detail::ResizeGradientKernel<ResizeMethod::nearest_neighbor> {};

template <>
struct Kernel<ResizeArea, Cpu> {
  ResizeArea::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return detail::resize_cost_ns(init); }
  void operator()(KernelContext& context) const {
    cpu::resize(context, ResizeMethod::area, {.align_corners = attrs.align_corners});
  }
};
template <>
struct Kernel<ResizeAreaGrad, Cpu> {
  ResizeAreaGrad::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return detail::resize_cost_ns(init); }
  void operator()(KernelContext& context) const {
    cpu::resize_gradient(context, ResizeMethod::area, {.align_corners = attrs.align_corners});
  }
};

}  // namespace dflow
