#pragma once

#include <dflow/kernels/cuda/linalg/kernel_work.hpp>

namespace dflow::cuda::detail {

AnyTensor& KernelWork::temporary(DType dtype, const Shape& shape) {
  return temporaries_.emplace_back(context_.allocate_temporary(dtype, shape));
}

AnyTensor& KernelWork::cleared(DType dtype, const Shape& shape) {
  AnyTensor& made = temporary(dtype, shape);
  clear_output(context_, made);
  return made;
}

std::vector<const AnyTensor*> KernelWork::temporaries() const {
  std::vector<const AnyTensor*> all;
  all.reserve(temporaries_.size());
  for (const AnyTensor& each : temporaries_) all.push_back(&each);
  return all;
}

void* KernelWork::workspace(std::size_t bytes) {
  return bytes == 0 ? nullptr : temporary(DType::uint8, {static_cast<std::int64_t>(bytes)}).raw_data();
}

void KernelWork::call_library(std::string_view doing, FunctionRef<ErrorCode(Driver&, const DeviceCore&)> call) const {
  CudaMemory& memory = state_of(context_).memory;
  DeviceCore& core = memory.core();
  ErrorCode code = call(core.driver(), core);
  if (code == ErrorCode::out_of_memory) {
    memory.allocator().reclaim();
    code = call(core.driver(), core);
  }
  core.require_ok(code, doing);
}

MemoryUses KernelWork::uses() const {
  MemoryUses all(context_);
  for (const AnyTensor& each : temporaries_) all.add(each, true);
  return all;
}

void KernelWork::launch(const KernelFunction& function, std::int64_t n, const void* args,
                        const ErrorSlot* errors) const {
  if (n != 0) cuda::launch(context_, function, grid_for(n), args, errors, temporaries());
}

void KernelWork::copy(const AnyTensor& x, AnyTensor& y) const {
  copy_strided(context_, {y.num_elements()}, {&x, 0, {1}}, {&y, 0, {1}}, temporaries());
}

void KernelWork::transpose(const AnyTensor& x, std::int64_t outer, std::int64_t rows, std::int64_t columns,
                           AnyTensor& y) const {
  copy_strided(context_, {outer, rows, columns}, {&x, 0, {rows * columns, columns, 1}},
               {&y, 0, {rows * columns, 1, rows}}, temporaries());
}

}  // namespace dflow::cuda::detail
