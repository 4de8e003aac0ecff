#pragma once

#include <dflow/core/memory/allocator.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace dflow {

struct PoolAllocatorOptions {
  /// The most bytes of freed blocks that are kept. Each of 16 shards may keep up to 128 KiB (4 blocks at least) more
  /// of each size up to 32 KiB.
  std::size_t max_cached_bytes = std::size_t{1} << 30;
};

/// Keeps freed blocks and hands them out again. If a step runs twice, it allocates nothing the second time and touches
/// no fresh page. Sizes are rounded up to one of four classes per power of two, by at most a fifth of the block.
/// Blocks up to 32 KiB are cached in shards that threads are spread over. Each shard is behind its own spin lock,
/// which is held for a few instructions. Larger blocks are cached in one place. Blocks may be freed on another thread
/// than they were allocated on. When the cache is full, blocks of the sizes that have not been used for the longest
/// make room.
///
/// Errors: allocate throws the errors of the inner allocator, after it has given back all cached blocks and tried
/// again; InvalidArgument for an alignment above `default_alignment`.
class PoolAllocator final : public Allocator {
 public:
  /// `inner` is kept if it belongs to a shared_ptr; else it must outlive this allocator and its blocks.
  /// Errors: InvalidArgument if its memory is not the CPU's.
  explicit PoolAllocator(Allocator& inner, PoolAllocatorOptions options = {});
  /// Errors also: InvalidArgument if `inner` is null.
  explicit PoolAllocator(std::shared_ptr<Allocator> inner, PoolAllocatorOptions options = {});
  /// Blocks that are still out go back to the inner allocator when they are freed.
  ~PoolAllocator() override;

  void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  std::string_view name() const noexcept override { return "pool"; }
  /// `peak_bytes_in_use` is the peak of the bytes taken from the inner allocator, cached blocks included.
  AllocatorStats stats() const noexcept override;

  /// Gives all cached blocks back to the inner allocator, and trims that.
  void trim() noexcept override;

 private:
  struct State;
  explicit PoolAllocator(std::unique_ptr<State> state) noexcept;

  State* state_;  ///< deletes itself with the last block
};

}  // namespace dflow
