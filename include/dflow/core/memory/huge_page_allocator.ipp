#pragma once

#include <dflow/core/memory/address_sanitizer.hpp>
#include <dflow/core/memory/allocator.ipp>
#include <dflow/core/memory/huge_chunk.hpp>
#include <dflow/core/memory/huge_page_allocator.hpp>

#include <bit>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace dflow {

struct HugePageAllocator::State final : BlockOwner {
  static constexpr std::size_t min_bytes = std::size_t{128} << 10;
  static constexpr std::size_t max_bytes = detail::HugeChunk::bytes - 1;

  static constexpr bool enabled = DFLOW_HAS_ADDRESS_SANITIZER == 0;

  explicit State(detail::InnerAllocator inner_allocator) : inner(std::move(inner_allocator)) {}
  ~State() {
    for (const auto& [begin, chunk] : chunks) inner.owner.deallocate(chunk.begin, detail::HugeChunk::bytes);
  }

  static bool is_cut(std::size_t bytes) noexcept { return enabled && bytes >= min_bytes && bytes <= max_bytes; }
  static std::size_t parts_of(std::size_t bytes) noexcept {
    return (bytes + detail::HugeChunk::part_bytes - 1) / detail::HugeChunk::part_bytes;
  }

  void deallocate(void* block, std::size_t bytes) noexcept override;
  void* cut(std::size_t parts);
  /// False for a block that was passed on.
  bool put_back(void* block, std::size_t parts) noexcept;
  void drop_empty_chunk() noexcept;

  detail::InnerAllocator inner;
  std::mutex mutex;
  std::unordered_map<std::uintptr_t, detail::HugeChunk> chunks;  ///< by where they begin
  detail::ChunkLists lists;
  detail::BlockCount blocks;
  std::atomic<std::size_t> bytes_in_use{0};
  std::atomic<std::size_t> peak_bytes_in_use{0};
};

void* HugePageAllocator::State::cut(std::size_t parts) {
  using detail::HugeChunk;
  const std::lock_guard lock(mutex);
  HugeChunk* chunk = lists.find(parts);
  if (chunk != nullptr) {
    lists.remove(*chunk);
  } else {
    auto* begin = static_cast<std::byte*>(detail::allocate_from(inner.allocator, HugeChunk::bytes, HugeChunk::bytes));
    try {
      chunk = &chunks.emplace(reinterpret_cast<std::uintptr_t>(begin), HugeChunk{begin}).first->second;
    } catch (...) {
      inner.owner.deallocate(begin, HugeChunk::bytes);
      throw;
    }
  }
  const int at = chunk->find(parts);
  chunk->free &= ~HugeChunk::run(parts, at);
  lists.insert(*chunk);
  return chunk->begin + static_cast<std::size_t>(at) * HugeChunk::part_bytes;
}

bool HugePageAllocator::State::put_back(void* block, std::size_t parts) noexcept {
  using detail::HugeChunk;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::size_t offset = address % HugeChunk::bytes;
  std::byte* released = nullptr;
  {
    const std::lock_guard lock(mutex);
    const auto found = chunks.find(address - offset);
    if (found == chunks.end()) return false;
    HugeChunk& chunk = found->second;
    lists.remove(chunk);
    chunk.free |= HugeChunk::run(parts, static_cast<int>(offset / HugeChunk::part_bytes));
    // One empty chunk is kept for the next block.
    if (chunk.free != HugeChunk::all_free || lists.empty_one() == nullptr) {
      lists.insert(chunk);
      return true;
    }
    released = chunk.begin;
    chunks.erase(found);
  }
  inner.owner.deallocate(released, HugeChunk::bytes);
  return true;
}

void HugePageAllocator::State::drop_empty_chunk() noexcept {
  std::byte* released = nullptr;
  {
    const std::lock_guard lock(mutex);
    detail::HugeChunk* chunk = lists.empty_one();
    if (chunk == nullptr) return;
    lists.remove(*chunk);
    released = chunk->begin;
    chunks.erase(reinterpret_cast<std::uintptr_t>(released));
  }
  inner.owner.deallocate(released, detail::HugeChunk::bytes);
}

void HugePageAllocator::State::deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  if (!is_cut(bytes) || !put_back(block, parts_of(bytes))) inner.owner.deallocate(block, bytes);
  bytes_in_use.fetch_sub(bytes, std::memory_order_relaxed);
  if (blocks.remove_block()) delete this;
}

HugePageAllocator::HugePageAllocator(std::unique_ptr<State> state) noexcept
    : Allocator(state->inner.allocator.is_host_memory(), *state), state_(state.release()) {}

HugePageAllocator::HugePageAllocator(Allocator& inner)
    : HugePageAllocator(std::make_unique<State>(detail::InnerAllocator(inner))) {}

HugePageAllocator::HugePageAllocator(std::shared_ptr<Allocator> inner)
    : HugePageAllocator(std::make_unique<State>(detail::InnerAllocator(std::move(inner)))) {}

HugePageAllocator::~HugePageAllocator() {
  if (state_->blocks.remove_allocator()) delete state_;
}

void* HugePageAllocator::allocate(std::size_t bytes, std::size_t alignment) {
  State& state = *state_;
  const bool is_cut =
      State::is_cut(bytes) && std::has_single_bit(alignment) && alignment <= detail::HugeChunk::part_bytes;
  void* block =
      is_cut ? state.cut(State::parts_of(bytes)) : detail::allocate_from(state.inner.allocator, bytes, alignment);
  state.blocks.add_block();
  const std::size_t in_use = state.bytes_in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (in_use > state.peak_bytes_in_use.load(std::memory_order_relaxed)) {
    detail::raise_to(state.peak_bytes_in_use, in_use);
  }
  return block;
}

void HugePageAllocator::deallocate(void* block, std::size_t bytes) noexcept { state_->deallocate(block, bytes); }

AllocatorStats HugePageAllocator::stats() const noexcept {
  AllocatorStats stats;
  stats.num_allocations = state_->blocks.num_allocations();
  stats.bytes_in_use = state_->bytes_in_use.load(std::memory_order_relaxed);
  stats.peak_bytes_in_use = state_->peak_bytes_in_use.load(std::memory_order_relaxed);
  return stats;
}

void HugePageAllocator::trim() noexcept {
  state_->drop_empty_chunk();
  state_->inner.allocator.trim();
}

Allocator& default_cpu_allocator() noexcept {
  // Never destroyed: tensors of static storage may outlive any order of destruction.
  alignas(CpuAllocator) static std::byte heap_storage[sizeof(CpuAllocator)];
  alignas(HugePageAllocator) static std::byte storage[sizeof(HugePageAllocator)];
  static Allocator& allocator =
      *::new (static_cast<void*>(storage)) HugePageAllocator(*::new (static_cast<void*>(heap_storage)) CpuAllocator);
  return allocator;
}

}  // namespace dflow
