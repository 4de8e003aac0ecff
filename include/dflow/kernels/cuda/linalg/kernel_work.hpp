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

/// A kernel of many steps on its GPU. It owns the temporaries, and all work issued by way of this object may touch
/// them.
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
  /// Calls a library that takes memory of its own. If the library has too little, all cached memory is given back,
  /// and the library is called once more. Throws the library's error.
  void call_library(std::string_view doing, FunctionRef<ErrorCode(Driver&, const DeviceCore&)> call) const;
  /// The blocks that the kernel touches, for a driver that checks them.
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
