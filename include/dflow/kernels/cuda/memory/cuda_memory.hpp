#pragma once

#include <dflow/core/device_memory.hpp>
#include <dflow/core/memory/pool_allocator.hpp>
#include <dflow/kernels/cuda/memory/completions.hpp>
#include <dflow/kernels/cuda/memory/cuda_allocator.hpp>

#include <memory>

namespace dflow::cuda {

/// The memory of a GPU and the ways across its border: copies run on streams of their own beside the kernels, ordered
/// with them by events. Host tensors in pinned memory (`pinned()`) are copied from and to where they lie, others by way
/// of a pinned buffer.
///
/// Another GPU of the same driver is copied to directly.
///
/// Thread safety, errors: as DeviceMemory.
class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(std::shared_ptr<DeviceCore> core, CudaAllocatorOptions options);
  ~CudaMemory() override;

  CudaAllocator& allocator() override { return *allocator_; }
  /// Host memory that the GPU copies from and to by itself; freed blocks are kept for reuse.
  Allocator& pinned() noexcept { return *pinned_pool_; }
  Completions& completions() noexcept { return *completions_; }
  DeviceCore& core() noexcept { return *core_; }
  const std::shared_ptr<DeviceCore>& shared_core() const noexcept { return core_; }

  void copy_in_async(const AnyTensor& host, CopyDone done) override;
  void copy_out_async(const AnyTensor& here, Allocator& allocator, CopyDone done) override;
  void copy_to_async(const AnyTensor& here, DeviceMemory& there, Allocator& host, CopyDone done) override;

  /// Issues a copy of `bytes` of a block to host memory behind the work on the compute stream, and calls `take` with
  /// them when it is done; the block is kept until then.
  void read_back(const AnyTensor& block, UniqueFunction<void(ErrorCode, const AnyTensor& pinned)> take);

 private:
  /// A handle on the tensor, or a copy of it, in pinned memory.
  AnyTensor in_pinned_memory(const AnyTensor& host);

  const std::shared_ptr<DeviceCore> core_;
  const std::shared_ptr<CudaAllocator> allocator_;
  const std::shared_ptr<PinnedAllocator> pinned_;
  const std::shared_ptr<PoolAllocator> pinned_pool_;
  std::unique_ptr<Completions> completions_;
};

}  // namespace dflow::cuda
