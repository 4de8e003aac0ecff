#pragma once

#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>

#include <bit>

namespace dflow {

template <>
struct Kernel<Identity, Cuda> : detail::ForwardKernel {};
template <>
struct Kernel<StopGradient, Cuda> : detail::ForwardKernel {};

template <>
struct Kernel<PlaceholderWithDefault, Cuda> : detail::PlaceholderWithDefaultKernel {};

template <>
struct Kernel<ZerosLike, Cuda> : cuda::NoStrings {
  void operator()(KernelContext& context) const {
    const Shape shape = context.input(0).shape();
    cuda::clear_output(context, context.forward_or_allocate(0, 0, shape));
  }
};

template <>
struct Kernel<OnesLike, Cuda> {
  void operator()(KernelContext& context) const {
    const auto one = std::bit_cast<cuda::Bits<16>>(detail::one_of(context.output_dtype(0)));
    const Shape shape = context.input(0).shape();
    cuda::fill_output(context, context.forward_or_allocate(0, 0, shape), nullptr, one);
  }
};

}  // namespace dflow
