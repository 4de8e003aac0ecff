#pragma once

#include <dflow/core/address_sanitizer.hpp>
#include <dflow/core/huge_page_allocator.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <mutex>
#include <vector>

namespace dflow {

namespace detail {

/// 2 MiB in 64 parts of 32 KiB; a set bit of `free` is a part that is not in use.
struct HugeChunk {
  static constexpr std::size_t bytes = std::size_t{2} << 20;
  static constexpr std::size_t part_bytes = bytes / 64;
  static constexpr std::uint64_t all_free = ~std::uint64_t{0};

  std::byte* begin = nullptr;
  std::uint64_t free = all_free;

  static constexpr std::uint64_t run(std::size_t parts, int at) noexcept {
    return (all_free >> (64 - parts)) << at;
  }
  /// The first of `parts` free parts in a row, or -1.
  constexpr int find(std::size_t parts) const noexcept {
    std::uint64_t starts = free;
    for (std::size_t have = 1; have < parts;) {
      const std::size_t shift = std::min(have, parts - have);
      starts &= starts >> shift;
      have += shift;
    }
    return starts == 0 ? -1 : std::countr_zero(starts);
  }
};

static_assert(HugeChunk{nullptr, 0b0111'0110}.find(3) == 4);
static_assert(HugeChunk{nullptr, 0b0111'0110}.find(4) == -1);
static_assert(HugeChunk{}.find(56) == 0);

}  // namespace detail

struct HugePageAllocator::State {
  static constexpr std::size_t min_bytes = std::size_t{128} << 10;
  static constexpr std::size_t max_bytes = detail::HugeChunk::bytes - 1;

  static constexpr bool enabled = DFLOW_HAS_ADDRESS_SANITIZER == 0;

  explicit State(Allocator& inner_allocator) : inner(inner_allocator) {}

  static bool is_cut(std::size_t bytes) noexcept { return enabled && bytes >= min_bytes && bytes <= max_bytes; }
  static std::size_t parts_of(std::size_t bytes) noexcept {
    return (bytes + detail::HugeChunk::part_bytes - 1) / detail::HugeChunk::part_bytes;
  }

  void* cut(std::size_t parts);
  /// False for a block that was passed on.
  bool put_back(void* block, std::size_t parts) noexcept;

  Allocator& inner;
  std::mutex mutex;
  std::vector<detail::HugeChunk> chunks;  ///< by address
  std::size_t num_empty = 0;
  std::atomic<std::uint64_t> num_allocations{0};
  std::atomic<std::size_t> bytes_in_use{0};
  std::atomic<std::size_t> peak_bytes_in_use{0};
};

DFLOW_INLINE void* HugePageAllocator::State::cut(std::size_t parts) {
  using detail::HugeChunk;
  const std::lock_guard lock(mutex);
  // The first that fits, so that blocks gather at low addresses and chunks at high ones fall empty.
  for (HugeChunk& chunk : chunks) {
    const int at = chunk.find(parts);
    if (at < 0) continue;
    if (chunk.free == HugeChunk::all_free) --num_empty;
    chunk.free &= ~HugeChunk::run(parts, at);
    return chunk.begin + static_cast<std::size_t>(at) * HugeChunk::part_bytes;
  }
  chunks.reserve(chunks.size() + 1);
  HugeChunk chunk{static_cast<std::byte*>(inner.allocate(HugeChunk::bytes, HugeChunk::bytes))};
  chunk.free &= ~HugeChunk::run(parts, 0);
  const auto at = std::upper_bound(chunks.begin(), chunks.end(), chunk.begin,
                                   [](const std::byte* begin, const HugeChunk& c) { return begin < c.begin; });
  chunks.insert(at, chunk);
  return chunk.begin;
}

DFLOW_INLINE bool HugePageAllocator::State::put_back(void* block, std::size_t parts) noexcept {
  using detail::HugeChunk;
  std::byte* released = nullptr;
  {
    const auto* address = static_cast<std::byte*>(block);
    const std::lock_guard lock(mutex);
    auto chunk = std::upper_bound(chunks.begin(), chunks.end(), address,
                                  [](const std::byte* a, const HugeChunk& c) { return a < c.begin; });
    if (chunk == chunks.begin()) return false;
    --chunk;
    const auto offset = static_cast<std::size_t>(address - chunk->begin);
    if (offset >= HugeChunk::bytes) return false;
    chunk->free |= HugeChunk::run(parts, static_cast<int>(offset / HugeChunk::part_bytes));
    if (chunk->free != HugeChunk::all_free) return true;
    if (num_empty == 0) {
      num_empty = 1;
      return true;
    }
    released = chunk->begin;
    chunks.erase(chunk);
  }
  inner.deallocate(released, HugeChunk::bytes);
  return true;
}

DFLOW_INLINE HugePageAllocator::HugePageAllocator(Allocator& inner)
    : Allocator(inner.is_host_memory()), state_(std::make_unique<State>(inner)) {}

DFLOW_INLINE HugePageAllocator::~HugePageAllocator() {
  for (const detail::HugeChunk& chunk : state_->chunks) state_->inner.deallocate(chunk.begin, detail::HugeChunk::bytes);
}

DFLOW_INLINE void* HugePageAllocator::allocate(std::size_t bytes, std::size_t alignment) {
  State& state = *state_;
  const bool is_cut = State::is_cut(bytes) && std::has_single_bit(alignment) && alignment <= detail::HugeChunk::part_bytes;
  void* block = is_cut ? state.cut(State::parts_of(bytes)) : state.inner.allocate(bytes, alignment);
  state.num_allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t in_use = state.bytes_in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (in_use > state.peak_bytes_in_use.load(std::memory_order_relaxed)) {
    detail::raise_to(state.peak_bytes_in_use, in_use);
  }
  return block;
}

DFLOW_INLINE void HugePageAllocator::deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  State& state = *state_;
  if (!State::is_cut(bytes) || !state.put_back(block, State::parts_of(bytes))) state.inner.deallocate(block, bytes);
  state.bytes_in_use.fetch_sub(bytes, std::memory_order_relaxed);
}

DFLOW_INLINE AllocatorStats HugePageAllocator::stats() const noexcept {
  AllocatorStats stats;
  stats.num_allocations = state_->num_allocations.load(std::memory_order_relaxed);
  stats.bytes_in_use = state_->bytes_in_use.load(std::memory_order_relaxed);
  stats.peak_bytes_in_use = state_->peak_bytes_in_use.load(std::memory_order_relaxed);
  return stats;
}

DFLOW_INLINE Allocator& default_cpu_allocator() noexcept {
  // Never destroyed: tensors of static storage may outlive any order of destruction.
  alignas(CpuAllocator) static std::byte heap_storage[sizeof(CpuAllocator)];
  alignas(HugePageAllocator) static std::byte storage[sizeof(HugePageAllocator)];
  static Allocator& allocator = *::new (static_cast<void*>(storage))
      HugePageAllocator(*::new (static_cast<void*>(heap_storage)) CpuAllocator);
  return allocator;
}

}  // namespace dflow
