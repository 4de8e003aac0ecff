#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/contract/host_arguments.hpp>
#include <dflow/kernels/cuda/cuda.hpp>

namespace dflow {

Status Cuda::check(const DeviceContext& device) {
  if (dynamic_cast<const CudaState*>(device.state) != nullptr) return Status();
  return Status::invalid_argument(
      str_cat("device ", device.name,
              " is of type GPU, but not a CudaDevice: it lacks the CudaState that the kernels of "
              "that type need"));
}

namespace cuda {

MemoryUses::MemoryUses(const KernelContext& context) {
  for (int i = 0; i < context.num_inputs(); ++i) add(context.input(i), false);
  auto& writable = const_cast<KernelContext&>(context);
  for (int o = 0; o < context.num_outputs(); ++o) add(writable.output(o), true);
}

void MemoryUses::add(const AnyTensor& tensor, bool writes) {
  if (tensor.bytes() != 0 && !is_host_object(tensor.dtype())) add(tensor.raw_data(), tensor.bytes(), writes);
}

void MemoryUses::add(const void* block, std::size_t bytes, bool writes) {
  if (many_.empty() && count_ < few_.size()) {
    few_[count_++] = {block, bytes, writes};
    return;
  }
  if (many_.empty()) many_.assign(few_.begin(), few_.end());
  many_.push_back({block, bytes, writes});
}

void launch(const KernelContext& context, const KernelFunction& function, GridShape shape, const void* arguments,
            const ErrorSlot* errors, std::span<const AnyTensor* const> temporaries) {
  MemoryUses uses(context);
  for (const AnyTensor* temporary : temporaries) uses.add(*temporary, true);
  if (errors != nullptr) uses.add(errors, sizeof(ErrorSlot), true);
  launch(context, function, shape, arguments, uses);
}

void launch(const KernelContext& context, const KernelFunction& function, GridShape shape, const void* arguments,
            const MemoryUses& uses) {
  DeviceCore& core = state_of(context).memory.core();
  core.require_ok(core.driver().launch(core.device(), function, shape, arguments, uses.all(), core.compute()),
                  str_cat("launching the kernel '", function.name, "'"));
}

}  // namespace cuda

}  // namespace dflow
