#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

namespace dflow::cuda::detail {

/// What a kernel of many steps does on its GPU: its temporaries, which all that is issued by way of this may touch.
class KernelWork {
 public:
  explicit KernelWork(KernelContext& context) : context_(context) {}

  KernelContext& context() const { return context_; }
  /// As long as this lives.
  AnyTensor& temporary(DType dtype, const Shape& shape);
  AnyTensor& cleared(DType dtype, const Shape& shape);
  std::vector<const AnyTensor*> temporaries() const;
  /// Memory for a library; null for none.
  void* workspace(std::size_t bytes);

  /// Nothing for n of 0.
  void launch(const KernelFunction& function, std::int64_t n, const void* args,
              const ErrorSlot* errors = nullptr) const;
  /// All of y is copied from the beginning of x.
  void copy(const AnyTensor& x, AnyTensor& y) const;
  /// [outer, rows, columns] of x becomes [outer, columns, rows] of y.
  void transpose(const AnyTensor& x, std::int64_t outer, std::int64_t rows, std::int64_t columns, AnyTensor& y) const;
  /// Calls a library, which takes memory of its own, once more with all that is cached given back if it has too little.
  /// Throws what it says.
  void call_library(std::string_view doing, FunctionRef<ErrorCode(Driver&, const DeviceCore&)> call) const;
  /// What the kernel touches, for a driver that checks it.
  MemoryUses uses() const;

 private:
  KernelContext& context_;
  std::deque<AnyTensor> temporaries_;
};

/// Element `at` of a tensor that the kernel may write to.
inline void* element_of(const AnyTensor& tensor, std::int64_t at) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(tensor.raw_data())) +
         static_cast<std::size_t>(at) * size_of(tensor.dtype());
}

}  // namespace dflow::cuda::detail
