#pragma once

#include <dflow/core/memory/allocator.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace dflow {

/// Cuts blocks of 128 KiB to 2 MiB out of chunks of 2 MiB, which the system can back by one huge page each; other
/// sizes are passed on. A matrix of a megabyte in pages of 4 KiB takes 256 entries of the processor's page cache. Each
/// miss costs more than the arithmetic on a line, in a virtual machine several times more.
///
/// Under AddressSanitizer everything is passed on, so that each block has its red zones.
///
/// Thread safety: safe; a lock is held for the sizes that are cut, in a time that does not grow with their number.
/// Errors: the errors of `inner`.
class HugePageAllocator final : public Allocator {
 public:
  /// `inner` is kept if it belongs to a shared_ptr; else it must outlive this allocator and its blocks.
  explicit HugePageAllocator(Allocator& inner);
  /// Errors: InvalidArgument if `inner` is null.
  explicit HugePageAllocator(std::shared_ptr<Allocator> inner);
  ~HugePageAllocator() override;

  void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  std::string_view name() const noexcept override { return "huge pages"; }
  /// Counts blocks that were handed out; an empty chunk that is kept for the next block is not counted.
  AllocatorStats stats() const noexcept override;
  /// Gives an empty chunk back to the inner allocator.
  void trim() noexcept override;

 private:
  struct State;
  explicit HugePageAllocator(std::unique_ptr<State> state) noexcept;

  State* state_;  ///< deletes itself with the last block
};

}  // namespace dflow
