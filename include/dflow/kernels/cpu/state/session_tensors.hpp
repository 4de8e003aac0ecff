#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/session_tensor_kernels.hpp>

namespace dflow {

template <>
struct Kernel<SessionTensorsOp, Cpu> : detail::SessionTensorsKernel {
  using SessionTensorsKernel::SessionTensorsKernel;
};
template <>
struct Kernel<GetSessionHandle, Cpu> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const { return 100 + estimated_elements(init.inputs[1]); }
  void operator()(KernelContext& context) const {
    detail::keep_session_tensor(context,
                                [&](const AnyTensor& value) { return value.deep_copy(*context.device().allocator); });
  }
};
template <>
struct Kernel<GetSessionTensor, Cpu> : detail::GetSessionTensorKernel {};
template <>
struct Kernel<DeleteSessionTensor, Cpu> : detail::DeleteSessionTensorKernel {};

}  // namespace dflow
