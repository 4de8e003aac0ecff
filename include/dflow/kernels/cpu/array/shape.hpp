#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/array/shape.hpp>

namespace dflow {

namespace detail {

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

}  // namespace detail

template <class T>
struct Kernel<ShapeOf, Cpu, T> : detail::ShapeKernel {};
template <class T>
struct Kernel<RankOf, Cpu, T> : detail::RankKernel {};
template <class T>
struct Kernel<SizeOf, Cpu, T> : detail::SizeKernel {};

}  // namespace dflow
