#pragma once

#include <dflow/base/status.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace dflow {

/// What an allocator has given out. Figures of different fields may be of slightly different moments.
struct AllocatorStats {
  std::uint64_t num_allocations = 0;  ///< calls of allocate that succeeded
  std::size_t bytes_in_use = 0;       ///< allocated and not deallocated yet
  std::size_t peak_bytes_in_use = 0;
  std::size_t bytes_cached = 0;  ///< kept for reuse
  std::size_t limit_bytes = std::numeric_limits<std::size_t>::max();
};

/// Where the bytes of tensors come from. Each device has one.
///
/// Thread safety: all functions may be called from any thread.
class Allocator {
 public:
  /// Alignment in bytes that every allocator gives: a cache line, and the widest vector register.
  static constexpr std::size_t default_alignment = 64;

  virtual ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// At least `bytes` uninitialised bytes, not null also for 0. `alignment` is a power of two.
  /// Errors: resource_exhausted that names the bytes; invalid_argument for an alignment this allocator does not give.
  virtual void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) = 0;
  /// Takes back what allocate returned for as many bytes.
  virtual void deallocate(void* block, std::size_t bytes) noexcept = 0;

  virtual std::string_view name() const noexcept = 0;
  virtual AllocatorStats stats() const noexcept = 0;

  /// False for memory that the CPU must not touch, such as a GPU's.
  bool is_host_memory() const noexcept { return is_host_memory_; }

 protected:
  explicit Allocator(bool is_host_memory = true) noexcept : is_host_memory_(is_host_memory) {}

 private:
  bool is_host_memory_;
};

/// The process's heap. Blocks of 2 MiB and more are advised to huge pages.
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

/// Passes on to another allocator until `limit_bytes` are in use; then allocate throws resource_exhausted.
class LimitAllocator final : public Allocator {
 public:
  /// `inner` must outlive this allocator.
  LimitAllocator(Allocator& inner, std::size_t limit_bytes) noexcept;

  void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) override;
  void deallocate(void* block, std::size_t bytes) noexcept override;
  std::string_view name() const noexcept override { return "limit"; }
  AllocatorStats stats() const noexcept override;

 private:
  Allocator& inner_;
  const std::size_t limit_bytes_;
  std::atomic<std::uint64_t> num_allocations_{0};
  std::atomic<std::size_t> bytes_in_use_{0};
  std::atomic<std::size_t> peak_bytes_in_use_{0};
};

/// The allocator of tensors that are made without naming one, and what sessions' own allocators take their memory from:
/// a HugePageAllocator on the process's heap, one per process.
Allocator& default_cpu_allocator() noexcept;

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/core/allocator.ipp>
#include <dflow/core/huge_page_allocator.hpp>
#endif
