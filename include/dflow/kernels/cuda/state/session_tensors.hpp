#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/cuda/state/update_call.hpp>
#include <dflow/kernels/state/session_tensor_kernels.hpp>

#include <cstdint>

namespace dflow {

template <>
struct Kernel<SessionTensorsOp, Cuda> : detail::SessionTensorsKernel, cuda::NoStrings {
  using SessionTensorsKernel::SessionTensorsKernel;
};
template <>
struct Kernel<GetSessionHandle, Cuda> : cuda::NoStrings {
  static constexpr bool repeats = false;  // each run gives another number
  static constexpr std::uint64_t host_outputs = 1;
  void operator()(KernelContext& context) const {
    detail::keep_session_tensor(context, [&](const AnyTensor& value) { return cuda::copy_of(context, value); });
  }
};
template <>
struct Kernel<GetSessionTensor, Cuda> : detail::GetSessionTensorKernel, cuda::NoStrings {
  static constexpr bool repeats = false;  // it reads a number on the host
  static constexpr std::uint64_t host_inputs = 2;
};
template <>
struct Kernel<DeleteSessionTensor, Cuda> : detail::DeleteSessionTensorKernel {
  static constexpr bool repeats = false;
  static constexpr std::uint64_t host_inputs = 2;
};

}  // namespace dflow
