#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/ops/array/one_hot.hpp>

#include <cstdint>

namespace dflow {

namespace cuda {

/// Output 0 has the new dimension `axis`: marks the elements that the indices, input 0, choose.
void mark_indices(KernelContext& context, int axis);

}  // namespace cuda

template <>
struct Kernel<OneHot, Cuda> : cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 2;
  OneHot::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::mark_indices(context, attrs.axis == -1 ? context.input(0).rank() : static_cast<int>(attrs.axis));
  }
};

}  // namespace dflow
