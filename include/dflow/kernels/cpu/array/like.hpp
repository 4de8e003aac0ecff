#pragma once

#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>

namespace dflow {

template <>
struct Kernel<PlaceholderWithDefault, Cpu> : detail::PlaceholderWithDefaultKernel {};

template <>
struct Kernel<ZerosLike, Cpu> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const {
    const OutputInfo& y = init.node.outputs[0];
    return 200 + estimated_elements(y) * static_cast<double>(size_of(y.dtype)) * 0.05;
  }

  void operator()(KernelContext& context) const {
    const Shape shape = context.input(0).shape();
    if (context.output_dtype(0) == DType::string) {
      context.allocate_output(0, shape);  // whose strings are empty
    } else {
      AnyTensor& y = context.forward_or_allocate(0, 0, shape);
      detail::clear_elements(y.dtype(), y.num_elements(), y.raw_data());
    }
  }
};

template <>
struct Kernel<OnesLike, Cpu> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const { return Kernel<ZerosLike, Cpu>().cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Shape shape = context.input(0).shape();
    AnyTensor& y = context.forward_or_allocate(0, 0, shape);
    detail::fill_elements(y.dtype(), y.num_elements(), detail::one_of(y.dtype()).data(), y.raw_data());
  }
};

template <>
struct Kernel<Identity, Cpu> : detail::ForwardKernel {};
template <>
struct Kernel<StopGradient, Cpu> : detail::ForwardKernel {};

}  // namespace dflow
