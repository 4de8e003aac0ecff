#pragma once

#include <dflow/kernels/cuda/state/update_call.hpp>

namespace dflow::cuda {

AnyTensor copy_of(const KernelContext& context, const AnyTensor& x) {
  AnyTensor copy(x.dtype(), x.shape(), *context.device().allocator);
  if (x.bytes() == 0) return copy;
  DeviceCore& core = state_of(context).memory.core();
  core.require_ok(
      core.driver().copy(core.device(), copy.raw_data(), x.raw_data(), x.bytes(), CopyKind::on_device, core.compute()),
      "copying a variable");
  return copy;
}

}  // namespace dflow::cuda
