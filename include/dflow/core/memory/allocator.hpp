#pragma once

/// Public: the interface to memory for tensors.

#include <dflow/base/status.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

namespace dflow {

/// The memory that an allocator has given out. Figures of different fields may be of slightly different moments.
struct AllocatorStats {
  std::uint64_t num_allocations = 0;  ///< calls of allocate that succeeded
  std::size_t bytes_in_use = 0;       ///< allocated and not deallocated yet
  std::size_t peak_bytes_in_use = 0;
  std::size_t bytes_cached = 0;  ///< kept for reuse
  std::size_t limit_bytes = std::numeric_limits<std::size_t>::max();
};

/// The object that takes blocks back. If a block owner is not an Allocator itself, it lives until the last of its
/// blocks is back, even after the allocator of the blocks has been destroyed.
///
/// Thread safety: may be called from any thread.
class BlockOwner {
 public:
  /// Takes back a block that was allocated with the same `bytes`.
  virtual void deallocate(void* block, std::size_t bytes) noexcept = 0;

 protected:
  BlockOwner() = default;
  ~BlockOwner() = default;
};

/// The source of memory for tensors. Each device has one.
///
/// Buffers outlive their allocator safely if it has a separate block owner (PoolAllocator, LimitAllocator,
/// HugePageAllocator) or belongs to a shared_ptr: each buffer then holds a share. Any other allocator must outlive its
/// buffers. An allocator that takes its memory from another allocator keeps that allocator in the same way.
///
/// Thread safety: all functions may be called from any thread.
class Allocator : public BlockOwner, public std::enable_shared_from_this<Allocator> {
 public:
  /// Alignment in bytes that every allocator gives: a cache line, and the widest vector register.
  static constexpr std::size_t default_alignment = 64;

  virtual ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Returns at least `bytes` uninitialised bytes, and never null, not even for 0 bytes. `alignment` is a power of two.
  /// Errors: ResourceExhausted that names the bytes; InvalidArgument for an alignment that the allocator does not
  /// support.
  virtual void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) = 0;
  /// Takes back a block that `allocate` returned for the same `bytes`.
  void deallocate(void* block, std::size_t bytes) noexcept override = 0;

  virtual std::string_view name() const noexcept = 0;
  virtual AllocatorStats stats() const noexcept = 0;

  /// Returns memory that is kept for reuse, to the system if possible. May block.
  virtual void trim() noexcept {}

  /// False for memory that the CPU must not touch, for example a GPU's.
  bool is_host_memory() const noexcept { return is_host_memory_; }

  /// Takes a block back in place of this allocator, even after the allocator has been destroyed. If the owner is this
  /// allocator itself, `keeper` keeps it alive.
  BlockOwner& block_owner() noexcept { return *block_owner_; }
  /// A share of this allocator if blocks need one: if it is its own block owner and belongs to a shared_ptr; else null.
  std::shared_ptr<Allocator> keeper() noexcept {
    return block_owner_ == this ? weak_from_this().lock() : std::shared_ptr<Allocator>();
  }

 protected:
  explicit Allocator(bool is_host_memory = true) noexcept : block_owner_(this), is_host_memory_(is_host_memory) {}
  Allocator(bool is_host_memory, BlockOwner& block_owner) noexcept
      : block_owner_(&block_owner), is_host_memory_(is_host_memory) {}

 private:
  BlockOwner* block_owner_;
  bool is_host_memory_;
};

namespace detail {

[[noreturn]] void throw_out_of_memory(std::string_view allocator, std::size_t bytes);

/// Allocates and checks for null: a user's allocator may pass on malloc's null. Errors: the errors of the allocator;
/// ResourceExhausted that names the allocator if it returns null.
inline void* allocate_from(Allocator& allocator, std::size_t bytes,
                           std::size_t alignment = Allocator::default_alignment) {
  void* block = allocator.allocate(bytes, alignment);
  if (block == nullptr) [[unlikely]]
    throw_out_of_memory(allocator.name(), bytes);
  return block;
}

}  // namespace detail

/// The process's heap. Blocks of 2 MiB and more are advised to huge pages.
///
/// Thread safety: safe.
class CpuAllocator final : public Allocator {
 public:
  CpuAllocator() noexcept = default;

  void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  std::string_view name() const noexcept override { return "cpu"; }
  AllocatorStats stats() const noexcept override;

 private:
  std::atomic<std::uint64_t> num_allocations_{0};
  std::atomic<std::size_t> bytes_in_use_{0};
  std::atomic<std::size_t> peak_bytes_in_use_{0};
};

/// Takes memory from another allocator until `limit_bytes` are in use; then allocate throws ResourceExhausted.
class LimitAllocator final : public Allocator {
 public:
  /// `inner` is kept if it belongs to a shared_ptr; else it must outlive this allocator and its blocks.
  LimitAllocator(Allocator& inner, std::size_t limit_bytes);
  /// Errors: InvalidArgument if `inner` is null.
  LimitAllocator(std::shared_ptr<Allocator> inner, std::size_t limit_bytes);
  ~LimitAllocator() override;

  void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  std::string_view name() const noexcept override { return "limit"; }
  AllocatorStats stats() const noexcept override;
  void trim() noexcept override;

 private:
  struct State;
  explicit LimitAllocator(std::unique_ptr<State> state) noexcept;

  State* state_;  ///< deletes itself with the last block
};

/// The default allocator of tensors, and the source of memory for sessions' own allocators: a HugePageAllocator on the
/// process's heap, one per process.
Allocator& default_cpu_allocator() noexcept;

}  // namespace dflow
