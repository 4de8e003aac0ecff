#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/array/like.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace dflow {

template <class T>
struct Kernel<ZerosLike, Cpu, T> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const {
    return 200 + estimated_elements(init.node.outputs[0]) * sizeof(T) * 0.05;
  }

  void operator()(KernelContext& context) const {
    const Shape shape = context.input(0).shape();
    if constexpr (std::is_same_v<T, std::string>) {
      context.allocate_output<T>(0, shape);  // whose strings are empty
    } else {
      AnyTensor& y = context.forward_or_allocate(0, 0, shape);
      if (y.bytes() != 0) std::memset(y.raw_data(), 0, y.bytes());
    }
  }
};

template <class T>
struct Kernel<OnesLike, Cpu, T> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const {
    return 200 + estimated_elements(init.node.outputs[0]) * sizeof(T) * 0.05;
  }

  void operator()(KernelContext& context) const {
    const Shape shape = context.input(0).shape();
    Tensor<T>& y = context.forward_or_allocate<T>(0, 0, shape);
    std::fill(y.begin(), y.end(), T(1));
  }
};

template <class T>
struct Kernel<Identity, Cpu, T> : detail::ForwardKernel {};
template <class T>
struct Kernel<StopGradient, Cpu, T> : detail::ForwardKernel {};

}  // namespace dflow
