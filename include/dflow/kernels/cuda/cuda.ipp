#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/host_arguments.hpp>

#include <array>

namespace dflow {

DFLOW_INLINE Status Cuda::check(const DeviceContext& device) {
  if (dynamic_cast<const CudaState*>(device.state) != nullptr) return Status();
  return invalid_argument(str_cat("device ", device.name,
                                  " is of type GPU, but not a CudaDevice: it lacks the CudaState that the kernels of "
                                  "that type need"));
}

namespace cuda {

DFLOW_INLINE void launch(const KernelContext& context, const KernelFunction& function, GridShape shape,
                         const void* arguments, const ErrorSlot* errors,
                         std::span<const AnyTensor* const> temporaries) {
  constexpr std::size_t most = 32;
  std::array<MemoryUse, most> uses;
  std::size_t count = 0;
  const auto use = [&](const AnyTensor& tensor, bool writes) {
    if (count < most && tensor.bytes() != 0 && !is_host_object(tensor.dtype()))
      uses[count++] = {tensor.raw_data(), tensor.bytes(), writes};
  };
  for (int i = 0; i < context.num_inputs(); ++i) use(context.input(i), false);
  auto& writable = const_cast<KernelContext&>(context);
  for (int o = 0; o < context.num_outputs(); ++o) use(writable.output(o), true);
  for (const AnyTensor* temporary : temporaries) use(*temporary, true);
  if (errors != nullptr && count < most) uses[count++] = {errors, sizeof(ErrorSlot), true};
  DeviceCore& core = state_of(context).memory.core();
  core.require_ok(
      core.driver().launch(core.device(), function, shape, arguments, std::span(uses.data(), count), core.compute()),
      str_cat("launching the kernel '", function.name, "'"));
}

}  // namespace cuda

}  // namespace dflow
