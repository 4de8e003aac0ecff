#pragma once

#include <dflow/core/memory/allocator.hpp>
#include <dflow/kernels/cuda/memory/device_core.hpp>

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::cuda {

struct CudaAllocatorOptions {
  /// No more than this is taken from the driver, cached blocks included.
  std::size_t limit_bytes = std::numeric_limits<std::size_t>::max();
  /// No more than this is kept of freed blocks.
  std::size_t max_cached_bytes = std::numeric_limits<std::size_t>::max();
};

/// The memory of a GPU, in the order of its compute stream. A freed block is given out again at once, since its next
/// owner issues work behind the work that used the block. Work of other streams must be ordered behind the compute
/// stream before it touches a new block, and keep a block as long as it uses it.
///
/// Sizes are rounded up to one of four classes per power of two, from 512 bytes on. Freed blocks are kept up to a
/// bound; when the driver has no more, or the limit is reached, all of them go back and it is tried again.
///
/// Blocks that a thread allocates while it captures work (`DeviceCore::Capturing`) are set aside, because the work
/// comes back to them at every launch. They are given out only to threads that capture, until no captured work with
/// them is left. As launches run one after the other, they share the blocks that live no longer than one launch. A
/// block that the work keeps is a block like any other.
///
/// Errors: allocate throws ResourceExhausted that names the bytes, the bytes in use and the limit; Unavailable for a
/// GPU that is lost; InvalidArgument for an alignment above 256.
class CudaAllocator final : public Allocator {
 public:
  explicit CudaAllocator(std::shared_ptr<DeviceCore> core, CudaAllocatorOptions options = {});
  ~CudaAllocator() override;

  void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  std::string_view name() const noexcept override { return "cuda"; }
  AllocatorStats stats() const noexcept override;
  void trim() noexcept override;

  /// The captured work that had these blocks from `DeviceCore::Capturing::shared` is gone.
  void end_shared(const std::set<void*>& blocks) noexcept;
  /// Other work that was captured may write to the block.
  bool is_shared(const void* block) const noexcept;
  /// `reclaim` is called, without a lock, when there is no memory left. It gives up the captured work, and with it
  /// the blocks set aside for that work. Before the first allocation.
  void set_reclaim(std::function<void()> reclaim) { reclaim_ = std::move(reclaim); }
  /// Gives all unused memory back to the driver: first the captured work is given up, then the cached blocks go back.
  void reclaim();

  /// The size that `bytes` are rounded up to.
  static std::size_t size_class(std::size_t bytes) noexcept;

 private:
  using Blocks = std::map<std::size_t, std::vector<void*>>;  ///< by size

  /// A block of captured work.
  struct SharedBlock {
    std::size_t size = 0;
    int users = 0;  ///< in captured work
    bool is_free = false;
  };

  static void* pop(Blocks& blocks, std::size_t size) noexcept;
  static bool push(Blocks& blocks, std::size_t size, void* block) noexcept;
  void* allocate_block(std::size_t bytes, std::size_t size);
  ErrorCode find(std::size_t size, void*& block);
  void* find_shared(std::size_t size) noexcept;
  void cache_or_free(void* block, std::size_t size) noexcept;
  ErrorCode take(std::size_t size, void*& block);
  void release_cached() noexcept;

  const std::shared_ptr<DeviceCore> core_;
  const CudaAllocatorOptions options_;
  mutable std::mutex mutex_;
  Blocks cached_;
  std::map<void*, SharedBlock> shared_;
  AllocatorStats stats_;
  std::function<void()> reclaim_;
};

/// Pinned host memory, which a GPU copies from and to by itself. Freed memory goes back to the driver: for use below
/// a PoolAllocator.
///
/// Errors: allocate throws ResourceExhausted that names the bytes; InvalidArgument for an alignment above 256.
class PinnedAllocator final : public Allocator {
 public:
  explicit PinnedAllocator(std::shared_ptr<Driver> driver) : driver_(std::move(driver)) {}

  void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  std::string_view name() const noexcept override { return "cuda pinned"; }
  AllocatorStats stats() const noexcept override;

  /// The address lies in a block of this allocator.
  bool contains(const void* address) const;

 private:
  const std::shared_ptr<Driver> driver_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, std::size_t> blocks_;  ///< bytes by address
  AllocatorStats stats_;
};

}  // namespace dflow::cuda
