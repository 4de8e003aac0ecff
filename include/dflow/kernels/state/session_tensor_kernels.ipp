#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/state/session_tensor_kernels.hpp>

#include <utility>

namespace dflow::detail {

void keep_session_tensor(KernelContext& context, CopyTensor copy) {
  auto& state = context.resource<SessionTensorsState>(0);
  Tensor<std::int64_t>& number = context.allocate_output<std::int64_t>(0, {});
  *number.data() = state.keep(context.owns_input(1) ? context.take_input(1) : copy(context.input(1)));
}

void GetSessionTensorKernel::operator()(KernelContext& context) const {
  const auto& state = context.resource<SessionTensorsState>(0);
  if (state.dtype() != context.output_dtype(0)) {
    context.fail(
        str_cat(state.debug_string(), " does not hold elements of type ", dtype_name(context.output_dtype(0))));
  }
  const std::int64_t number = context.scalar_input<std::int64_t>(1);
  AnyTensor tensor = state.get(number);
  const PartialShape& wanted = context.node().outputs[0].shape;
  if (!wanted.is_compatible_with(tensor.shape())) {
    context.fail(str_cat("tensor ", number, " has shape ", tensor.shape().to_string(), ", not ", wanted.to_string()));
  }
  context.set_output(0, std::move(tensor));
}

void DeleteSessionTensorKernel::operator()(KernelContext& context) const {
  AnyTensor removed = context.resource<SessionTensorsState>(0).take(context.scalar_input<std::int64_t>(1));
  const DeviceContext& device = context.device();
  if (device.release != nullptr) device.release(device, std::move(removed));
}

}  // namespace dflow::detail
