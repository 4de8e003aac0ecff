#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/inferred_shape.hpp>
#include <dflow/ops/array/reshape.hpp>

namespace dflow {

namespace detail {

/// Output 0 is input 0 in the shape that the op infers, its elements shared.
struct ReshapeKernel {
  double cost_ns(const KernelInit&) const { return 150; }
  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    context.set_output(0, context.input(0).reshaped(shape));
  }
};

}  // namespace detail

template <class T, class I>
struct Kernel<Reshape, Cpu, T, I> : detail::ReshapeKernel {};
template <class T>
struct Kernel<ExpandDims, Cpu, T> : detail::ReshapeKernel {};
template <class T>
struct Kernel<Squeeze, Cpu, T> : detail::ReshapeKernel {};

}  // namespace dflow
