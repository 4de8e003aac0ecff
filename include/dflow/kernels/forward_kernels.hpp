#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/kernels/inferred_shape.hpp>
#include <dflow/kernels/kernel.hpp>
#include <dflow/kernels/kernel_context.hpp>

#include <cstdint>

namespace dflow::detail {

// Kernels that touch no element, the same for every device and element type.

struct NoOpKernel {
  double cost_ns(const KernelInit&) const { return 5; }
  void operator()(KernelContext&) const {}
};

/// Output 0 is input 0, its elements shared.
struct ForwardKernel {
  double cost_ns(const KernelInit&) const { return 50; }
  void operator()(KernelContext& context) const { context.set_output(0, context.input(0)); }
};

/// Output 0 is input 0 in the shape that the op infers, its elements shared.
struct ReshapeKernel {
  double cost_ns(const KernelInit&) const { return 150; }
  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    context.set_output(0, context.input(0).reshaped(shape));
  }
};

// Their outputs are in host memory.

struct ShapeKernel {
  double cost_ns(const KernelInit&) const { return 60; }
  void operator()(KernelContext& context) const {
    const Shape shape = context.input(0).shape();
    std::int32_t* y = context.allocate_output<std::int32_t>(0, {shape.rank()}).data();
    for (const std::int64_t dim : shape) *y++ = narrow<std::int32_t>(dim);
  }
};

struct RankKernel {
  double cost_ns(const KernelInit&) const { return 60; }
  void operator()(KernelContext& context) const {
    const int rank = context.input(0).rank();
    *context.allocate_output<std::int32_t>(0, {}).data() = rank;
  }
};

struct SizeKernel {
  double cost_ns(const KernelInit&) const { return 60; }
  void operator()(KernelContext& context) const {
    const auto size = narrow<std::int32_t>(context.input(0).num_elements());
    *context.allocate_output<std::int32_t>(0, {}).data() = size;
  }
};

}  // namespace dflow::detail
