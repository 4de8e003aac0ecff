#pragma once

#include <dflow/core/allocator.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace dflow {

struct PoolAllocatorOptions {
  /// Freed blocks are handed back to the inner allocator rather than kept beyond this.
  std::size_t max_cached_bytes = std::size_t{1} << 30;
};

/// Keeps freed blocks and hands them out again, so that a step that runs twice allocates nothing the second time and
/// touches no fresh page. Sizes are rounded up to one of four classes per power of two, by at most a fifth of the
/// block.
///
/// Blocks up to 32 KiB are cached in shards that threads are spread over, each behind its own spin lock that is held
/// for a few instructions; larger ones in one place. Blocks may be freed on another thread than they were allocated on.
///
/// Errors: allocate throws what the inner allocator throws, after giving back all cached blocks and trying again;
/// invalid_argument for an alignment above `default_alignment`.
class PoolAllocator final : public Allocator {
 public:
  /// `inner` must outlive this allocator, and every block must be back before it is destroyed.
  explicit PoolAllocator(Allocator& inner, PoolAllocatorOptions options = {});
  ~PoolAllocator() override;

  void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  std::string_view name() const noexcept override { return "pool"; }
  /// `peak_bytes_in_use` is the peak of what was taken from the inner allocator, cached blocks included.
  AllocatorStats stats() const noexcept override;

  /// Gives all cached blocks back to the inner allocator.
  void trim() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/core/pool_allocator.ipp>
#endif
