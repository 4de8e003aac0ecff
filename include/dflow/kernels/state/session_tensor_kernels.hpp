#pragma once

#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>
#include <dflow/kernels/state/handle_kernel.hpp>
#include <dflow/kernels/state/variable_kernel.hpp>
#include <dflow/ops/state/session_tensors.hpp>
#include <dflow/state/session_tensors_state.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace dflow::detail {

// The kernels of kept tensors, the same for every device and element type. Numbers are in host memory.

struct SessionTensorsKernel : HandleKernel<SessionTensorsKernel, SessionTensorsOp, SessionTensorsState> {
  explicit SessionTensorsKernel(const KernelInit& init)
      : HandleKernel(init),
        dtype(init.node.types[0]),
        memory_limit(init.node.attrs_as<SessionTensorsOp>().memory_limit) {}
  std::shared_ptr<SessionTensorsState> make(const std::string& name) const {
    return std::make_shared<SessionTensorsState>(name, dtype, memory_limit);
  }
  bool is_same_kind(const SessionTensorsState& state) const {
    return state.dtype() == dtype && state.memory_limit() == memory_limit;
  }

  DType dtype;
  std::int64_t memory_limit;
};

/// Keeps input 1, or a copy of it where others may write to it.
void keep_session_tensor(KernelContext& context, CopyTensor copy);

struct GetSessionTensorKernel {
  double cost_ns(const KernelInit&) const { return 50; }
  void operator()(KernelContext& context) const;
};

struct DeleteSessionTensorKernel {
  double cost_ns(const KernelInit&) const { return 100; }
  void operator()(KernelContext& context) const;
};

}  // namespace dflow::detail
