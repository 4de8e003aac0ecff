#pragma once

#include <dflow/core/memory/allocator.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace dflow {

namespace detail {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
inline constexpr std::size_t max_cpu_alignment = huge_page_bytes;
/// Larger blocks are refused without asking malloc, which under a sanitizer would end the process.
inline constexpr std::size_t max_cpu_block_bytes = std::size_t{1} << 39;

[[noreturn]] void throw_out_of_memory(std::string_view allocator, std::size_t bytes) {
  throw_error(Status::resource_exhausted(str_cat("allocator ", allocator, " has no memory for ", bytes, " bytes")));
}

[[noreturn]] void throw_bad_alignment(std::string_view allocator, std::size_t alignment) {
  throw_error(Status::invalid_argument(
      str_cat("allocator ", allocator, " does not give an alignment of ", alignment, " bytes")));
}

void raise_to(std::atomic<std::size_t>& peak, std::size_t value) noexcept {
  std::size_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

/// Asks for huge pages where whole ones fit: fewer faults on first touch and fewer TLB misses later.
void advise_huge_pages([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t first = (address + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
  const std::uintptr_t last = (address + bytes) / huge_page_bytes * huge_page_bytes;
  if (first < last) ::madvise(static_cast<std::byte*>(block) + (first - address), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace detail

Allocator::~Allocator() = default;

// malloc and not aligned_alloc, which glibc serves from no thread cache. The address that malloc gave is kept right
// before the block.
void* CpuAllocator::allocate(std::size_t bytes, std::size_t alignment) {
  if (alignment < default_alignment) alignment = default_alignment;
  // Only address space is lost by that, and all of the block can lie in huge pages.
  std::size_t taken = bytes;
  if (bytes >= detail::huge_page_bytes) {
    alignment = std::max(alignment, detail::huge_page_bytes);
    // An end that fills most of a page gets a whole one.
    const std::size_t end = bytes % detail::huge_page_bytes;
    if (end > detail::huge_page_bytes * 5 / 8) taken += detail::huge_page_bytes - end;
  }
  if ((alignment & (alignment - 1)) != 0 || alignment > detail::max_cpu_alignment) [[unlikely]] {
    detail::throw_bad_alignment(name(), alignment);
  }
  if (bytes > detail::max_cpu_block_bytes) [[unlikely]]
    detail::throw_out_of_memory(name(), bytes);
  void* raw = std::malloc(taken + alignment);
  if (raw == nullptr) [[unlikely]]
    detail::throw_out_of_memory(name(), bytes);
  // malloc aligns to 16, so the next boundary is at least that far and leaves room for the address.
  const auto address = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = (address + alignment) & ~(alignment - 1);
  static_assert(alignof(std::max_align_t) >= sizeof(void*));
  void* block = static_cast<std::byte*>(raw) + (aligned - address);
  std::memcpy(static_cast<std::byte*>(block) - sizeof raw, &raw, sizeof raw);
  if (bytes >= detail::huge_page_bytes) detail::advise_huge_pages(block, taken);

  num_allocations_.fetch_add(1, std::memory_order_relaxed);
  const std::size_t in_use = bytes_in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (in_use > peak_bytes_in_use_.load(std::memory_order_relaxed)) detail::raise_to(peak_bytes_in_use_, in_use);
  return block;
}

void CpuAllocator::deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  void* raw = nullptr;
  std::memcpy(&raw, static_cast<std::byte*>(block) - sizeof raw, sizeof raw);
  std::free(raw);
  bytes_in_use_.fetch_sub(bytes, std::memory_order_relaxed);
}

AllocatorStats CpuAllocator::stats() const noexcept {
  AllocatorStats stats;
  stats.num_allocations = num_allocations_.load(std::memory_order_relaxed);
  stats.bytes_in_use = bytes_in_use_.load(std::memory_order_relaxed);
  stats.peak_bytes_in_use = peak_bytes_in_use_.load(std::memory_order_relaxed);
  return stats;
}

namespace detail {

/// Where an allocator takes its memory from.
struct InnerAllocator {
  explicit InnerAllocator(Allocator& inner)
      : allocator(inner), owner(inner.block_owner()), share(inner.weak_from_this().lock()) {}
  explicit InnerAllocator(std::shared_ptr<Allocator> inner) : InnerAllocator(require(inner)) {
    share = std::move(inner);
  }

  Allocator& allocator;  ///< for allocating: there as long as the outer allocator
  BlockOwner& owner;     ///< there as long as a block is out
  std::shared_ptr<Allocator> share;

 private:
  static Allocator& require(const std::shared_ptr<Allocator>& inner) {
    if (inner == nullptr) throw_error(Status::invalid_argument("an allocator cannot take its memory from none"));
    return *inner;
  }
};

/// Counts the blocks of an allocator's state, and says which of its holders is the last: the allocator, or a block.
class BlockCount {
 public:
  void add_block() noexcept { handed_out_.fetch_add(1, std::memory_order_relaxed); }
  /// True if the allocator has gone and this was the last block.
  [[nodiscard]] bool remove_block() noexcept { return returned_.fetch_add(1, std::memory_order_acq_rel) == -1; }
  /// True if no block is out.
  [[nodiscard]] bool remove_allocator() noexcept {
    const std::int64_t all = handed_out_.load(std::memory_order_relaxed);
    // From here on the number counts up to 0.
    return returned_.fetch_sub(all, std::memory_order_acq_rel) == all;
  }
  std::uint64_t num_allocations() const noexcept {
    return static_cast<std::uint64_t>(handed_out_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<std::int64_t> handed_out_{0};
  std::atomic<std::int64_t> returned_{0};
};

}  // namespace detail

struct LimitAllocator::State final : BlockOwner {
  State(detail::InnerAllocator inner_allocator, std::size_t limit)
      : inner(std::move(inner_allocator)), limit_bytes(limit) {}

  void* allocate(std::size_t bytes, std::size_t alignment) {
    std::size_t in_use = bytes_in_use.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_bytes - in_use) {
        throw_error(Status::resource_exhausted(str_cat("allocating ", bytes, " bytes would exceed the limit of ",
                                                       limit_bytes, " bytes, of which ", in_use, " are in use")));
      }
    } while (!bytes_in_use.compare_exchange_weak(in_use, in_use + bytes, std::memory_order_relaxed));
    void* block = nullptr;
    try {
      block = detail::allocate_from(inner.allocator, bytes, alignment);
    } catch (...) {
      bytes_in_use.fetch_sub(bytes, std::memory_order_relaxed);
      throw;
    }
    blocks.add_block();
    detail::raise_to(peak_bytes_in_use, in_use + bytes);
    return block;
  }

  void deallocate(void* block, std::size_t bytes) noexcept override {
    if (block == nullptr) return;
    inner.owner.deallocate(block, bytes);
    bytes_in_use.fetch_sub(bytes, std::memory_order_relaxed);
    if (blocks.remove_block()) delete this;
  }

  detail::InnerAllocator inner;
  const std::size_t limit_bytes;
  detail::BlockCount blocks;
  std::atomic<std::size_t> bytes_in_use{0};
  std::atomic<std::size_t> peak_bytes_in_use{0};
};

LimitAllocator::LimitAllocator(std::unique_ptr<State> state) noexcept
    : Allocator(state->inner.allocator.is_host_memory(), *state), state_(state.release()) {}

LimitAllocator::LimitAllocator(Allocator& inner, std::size_t limit_bytes)
    : LimitAllocator(std::make_unique<State>(detail::InnerAllocator(inner), limit_bytes)) {}

LimitAllocator::LimitAllocator(std::shared_ptr<Allocator> inner, std::size_t limit_bytes)
    : LimitAllocator(std::make_unique<State>(detail::InnerAllocator(std::move(inner)), limit_bytes)) {}

LimitAllocator::~LimitAllocator() {
  if (state_->blocks.remove_allocator()) delete state_;
}

void* LimitAllocator::allocate(std::size_t bytes, std::size_t alignment) { return state_->allocate(bytes, alignment); }

void LimitAllocator::deallocate(void* block, std::size_t bytes) noexcept { state_->deallocate(block, bytes); }

AllocatorStats LimitAllocator::stats() const noexcept {
  AllocatorStats stats;
  stats.num_allocations = state_->blocks.num_allocations();
  stats.bytes_in_use = state_->bytes_in_use.load(std::memory_order_relaxed);
  stats.peak_bytes_in_use = state_->peak_bytes_in_use.load(std::memory_order_relaxed);
  stats.limit_bytes = state_->limit_bytes;
  return stats;
}

void LimitAllocator::trim() noexcept { state_->inner.allocator.trim(); }

}  // namespace dflow
