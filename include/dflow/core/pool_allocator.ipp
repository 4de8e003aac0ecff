#pragma once

#include <dflow/base/spin_lock.hpp>
#include <dflow/core/address_sanitizer.hpp>
#include <dflow/core/pool_allocator.hpp>

#include <algorithm>
#include <array>
#include <bit>

#if DFLOW_HAS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace dflow {

namespace detail {

/// Sizes of cached blocks: multiples of 64 up to 256, then four per power of two.
struct SizeClass {
  static constexpr int max_log2 = 46;
  static constexpr std::size_t max_bytes = std::size_t{1} << max_log2;
  static constexpr std::size_t count = 4 + (max_log2 - 8) * 4;
  static constexpr std::size_t num_small = 4 + (15 - 8) * 4;  ///< up to 32 KiB

  static constexpr std::size_t of(std::size_t bytes) noexcept {
    if (bytes <= 256) return bytes == 0 ? 0 : (bytes - 1) / 64;
    const std::size_t n = bytes - 1;
    const int log2 = static_cast<int>(std::bit_width(n)) - 1;
    return 4 + static_cast<std::size_t>(log2 - 8) * 4 + ((n >> (log2 - 2)) & 3);
  }
  static constexpr std::size_t bytes_of(std::size_t size_class) noexcept {
    if (size_class < 4) return (size_class + 1) * 64;
    const std::size_t above = size_class - 4;
    return (above % 4 + 5) << (above / 4 + 6);
  }
  /// How many blocks of a small class one shard keeps: 128 KiB, within limits.
  static constexpr std::uint32_t shard_capacity(std::size_t size_class) noexcept {
    return static_cast<std::uint32_t>(std::clamp<std::size_t>((std::size_t{128} << 10) / bytes_of(size_class), 4, 512));
  }
};

static_assert(SizeClass::bytes_of(SizeClass::of(257)) == 320 && SizeClass::bytes_of(SizeClass::of(320)) == 320);
static_assert(SizeClass::of(SizeClass::bytes_of(SizeClass::num_small - 1)) == SizeClass::num_small - 1);
static_assert(SizeClass::bytes_of(SizeClass::num_small - 1) == std::size_t{32} << 10);
static_assert(SizeClass::of(SizeClass::max_bytes) == SizeClass::count - 1);

/// A cached block: its first bytes link it to the next.
struct FreeBlock {
  FreeBlock* next;
};

struct FreeList {
  FreeBlock* first = nullptr;
  std::uint32_t count = 0;

  void push(FreeBlock* block) noexcept {
    block->next = first;
    first = block;
    ++count;
  }
  FreeBlock* pop() noexcept {
    FreeBlock* block = first;
    if (block != nullptr) {
      first = block->next;
      --count;
    }
    return block;
  }
  /// Takes `wanted` blocks, or all there are.
  FreeList split(std::uint32_t wanted) noexcept {
    FreeList taken;
    while (taken.count < wanted && first != nullptr) taken.push(pop());
    return taken;
  }
};

/// Which of `count` shards (a power of two) this thread uses: threads differ in where their thread block lies.
inline std::size_t shard_of_this_thread(std::size_t count) noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
  const auto address = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#else
  static thread_local char mark = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(&mark);
#endif
  return static_cast<std::size_t>((static_cast<std::uint64_t>(address) * 0x9e3779b97f4a7c15u) >> 40) & (count - 1);
}

inline void mark_cached([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) noexcept {
#if DFLOW_HAS_ADDRESS_SANITIZER
  __asan_poison_memory_region(static_cast<std::byte*>(block) + sizeof(FreeBlock), bytes - sizeof(FreeBlock));
#endif
}
inline void mark_in_use([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) noexcept {
#if DFLOW_HAS_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(block, bytes);
#endif
}

}  // namespace detail

struct PoolAllocator::State {
  static constexpr std::size_t num_shards = 16;

  /// Counters of a shard may be negative on their own: a block may be freed in another shard. Their sums are right.
  struct Counters {
    std::int64_t num_allocations = 0;
    std::int64_t bytes_in_use = 0;
  };
  struct alignas(64) Shard {
    detail::SpinLock lock;
    Counters counters;
    std::array<detail::FreeList, detail::SizeClass::num_small> free;
  };
  struct alignas(64) Central {
    detail::SpinLock lock;
    Counters counters;
    std::size_t bytes_cached = 0;
    std::array<detail::FreeList, detail::SizeClass::count> free;
  };

  State(Allocator& inner_allocator, PoolAllocatorOptions pool_options)
      : inner(inner_allocator), options(pool_options) {}

  detail::FreeBlock* take_small(std::size_t size_class, std::size_t bytes);
  void give_small(detail::FreeBlock* block, std::size_t size_class, std::size_t bytes) noexcept;
  detail::FreeBlock* take_large(std::size_t size_class, std::size_t bytes);
  void give_large(detail::FreeBlock* block, std::size_t size_class, std::size_t bytes) noexcept;
  /// Blocks of one class from the central lists; the caller holds the central lock.
  detail::FreeList take_central(std::size_t size_class, std::uint32_t wanted) noexcept;
  /// Keeps blocks centrally up to the cap; returns the ones that must go back to the inner allocator.
  detail::FreeList give_central(detail::FreeList blocks, std::size_t size_class) noexcept;
  void return_to_inner(detail::FreeList blocks, std::size_t size_class) noexcept;
  void* allocate_inner(PoolAllocator& pool, std::size_t size_class);

  Allocator& inner;
  const PoolAllocatorOptions options;
  std::atomic<std::size_t> bytes_taken{0};
  std::atomic<std::size_t> peak_bytes_taken{0};
  std::array<Shard, num_shards> shards;
  Central central;
};

DFLOW_INLINE PoolAllocator::PoolAllocator(Allocator& inner, PoolAllocatorOptions options)
    : state_(std::make_unique<State>(inner, options)) {
  if (!inner.is_host_memory()) {
    throw_error(Code::invalid_argument,
                str_cat("a pool cannot cache blocks of allocator ", inner.name(), ": its memory is not the CPU's"));
  }
}

DFLOW_INLINE PoolAllocator::~PoolAllocator() { trim(); }

DFLOW_INLINE detail::FreeList PoolAllocator::State::take_central(std::size_t size_class,
                                                                 std::uint32_t wanted) noexcept {
  detail::FreeList taken = central.free[size_class].split(wanted);
  central.bytes_cached -= taken.count * detail::SizeClass::bytes_of(size_class);
  return taken;
}

DFLOW_INLINE detail::FreeList PoolAllocator::State::give_central(detail::FreeList blocks,
                                                                 std::size_t size_class) noexcept {
  const std::size_t block_bytes = detail::SizeClass::bytes_of(size_class);
  while (blocks.first != nullptr && block_bytes <= options.max_cached_bytes - central.bytes_cached) {
    central.free[size_class].push(blocks.pop());
    central.bytes_cached += block_bytes;
  }
  return blocks;
}

DFLOW_INLINE void PoolAllocator::State::return_to_inner(detail::FreeList blocks, std::size_t size_class) noexcept {
  const std::size_t block_bytes = detail::SizeClass::bytes_of(size_class);
  bytes_taken.fetch_sub(blocks.count * block_bytes, std::memory_order_relaxed);
  while (detail::FreeBlock* block = blocks.pop()) {
    detail::mark_in_use(block, block_bytes);
    inner.deallocate(block, block_bytes);
  }
}

DFLOW_INLINE void* PoolAllocator::State::allocate_inner(PoolAllocator& pool, std::size_t size_class) {
  const std::size_t block_bytes = detail::SizeClass::bytes_of(size_class);
  void* block = nullptr;
  try {
    block = inner.allocate(block_bytes);
  } catch (const Error&) {
    pool.trim();
    block = inner.allocate(block_bytes);
  }
  const std::size_t taken = bytes_taken.fetch_add(block_bytes, std::memory_order_relaxed) + block_bytes;
  detail::raise_to(peak_bytes_taken, taken);
  return block;
}

DFLOW_INLINE detail::FreeBlock* PoolAllocator::State::take_small(std::size_t size_class, std::size_t bytes) {
  Shard& shard = shards[detail::shard_of_this_thread(num_shards)];
  detail::SpinGuard hold(shard.lock);
  detail::FreeList& free = shard.free[size_class];
  if (free.first == nullptr) [[unlikely]] {
    detail::SpinGuard hold_central(central.lock);
    free = take_central(size_class, detail::SizeClass::shard_capacity(size_class) / 2);
  }
  shard.counters.num_allocations += 1;
  shard.counters.bytes_in_use += static_cast<std::int64_t>(bytes);
  return free.pop();
}

DFLOW_INLINE void PoolAllocator::State::give_small(detail::FreeBlock* block, std::size_t size_class,
                                                   std::size_t bytes) noexcept {
  detail::FreeList excess;
  {
    Shard& shard = shards[detail::shard_of_this_thread(num_shards)];
    detail::SpinGuard hold(shard.lock);
    detail::FreeList& free = shard.free[size_class];
    free.push(block);
    shard.counters.bytes_in_use -= static_cast<std::int64_t>(bytes);
    if (free.count <= detail::SizeClass::shard_capacity(size_class)) [[likely]]
      return;
    excess = free.split(free.count / 2);
  }
  {
    detail::SpinGuard hold(central.lock);
    excess = give_central(excess, size_class);
  }
  if (excess.first != nullptr) return_to_inner(excess, size_class);
}

DFLOW_INLINE detail::FreeBlock* PoolAllocator::State::take_large(std::size_t size_class, std::size_t bytes) {
  detail::SpinGuard hold(central.lock);
  central.counters.num_allocations += 1;
  central.counters.bytes_in_use += static_cast<std::int64_t>(bytes);
  return take_central(size_class, 1).first;
}

DFLOW_INLINE void PoolAllocator::State::give_large(detail::FreeBlock* block, std::size_t size_class,
                                                   std::size_t bytes) noexcept {
  detail::FreeList excess;
  excess.push(block);
  {
    detail::SpinGuard hold(central.lock);
    central.counters.bytes_in_use -= static_cast<std::int64_t>(bytes);
    excess = give_central(excess, size_class);
  }
  if (excess.first != nullptr) return_to_inner(excess, size_class);
}

DFLOW_INLINE void* PoolAllocator::allocate(std::size_t bytes, std::size_t alignment) {
  if (alignment > default_alignment || (alignment & (alignment - 1)) != 0) [[unlikely]] {
    detail::throw_bad_alignment(name(), alignment);
  }
  if (bytes > detail::SizeClass::max_bytes) [[unlikely]]
    detail::throw_out_of_memory(name(), bytes);
  const std::size_t size_class = detail::SizeClass::of(bytes);
  const bool is_small = size_class < detail::SizeClass::num_small;
  void* block = is_small ? state_->take_small(size_class, bytes) : state_->take_large(size_class, bytes);
  if (block != nullptr) [[likely]] {
    detail::mark_in_use(block, detail::SizeClass::bytes_of(size_class));
    return block;
  }
  try {
    return state_->allocate_inner(*this, size_class);
  } catch (...) {
    detail::SpinGuard hold(state_->central.lock);
    state_->central.counters.num_allocations -= 1;
    state_->central.counters.bytes_in_use -= static_cast<std::int64_t>(bytes);
    throw;
  }
}

DFLOW_INLINE void PoolAllocator::deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  const std::size_t size_class = detail::SizeClass::of(bytes);
  detail::mark_cached(block, detail::SizeClass::bytes_of(size_class));
  auto* free = ::new (block) detail::FreeBlock;
  if (size_class < detail::SizeClass::num_small) {
    state_->give_small(free, size_class, bytes);
  } else {
    state_->give_large(free, size_class, bytes);
  }
}

DFLOW_INLINE AllocatorStats PoolAllocator::stats() const noexcept {
  State::Counters sum;
  std::size_t bytes_cached = 0;
  for (State::Shard& shard : state_->shards) {
    detail::SpinGuard hold(shard.lock);
    sum.num_allocations += shard.counters.num_allocations;
    sum.bytes_in_use += shard.counters.bytes_in_use;
    for (std::size_t i = 0; i < shard.free.size(); ++i)
      bytes_cached += shard.free[i].count * detail::SizeClass::bytes_of(i);
  }
  {
    detail::SpinGuard hold(state_->central.lock);
    sum.num_allocations += state_->central.counters.num_allocations;
    sum.bytes_in_use += state_->central.counters.bytes_in_use;
    bytes_cached += state_->central.bytes_cached;
  }
  AllocatorStats stats;
  stats.num_allocations = static_cast<std::uint64_t>(sum.num_allocations);
  stats.bytes_in_use = static_cast<std::size_t>(std::max<std::int64_t>(sum.bytes_in_use, 0));
  stats.peak_bytes_in_use = state_->peak_bytes_taken.load(std::memory_order_relaxed);
  stats.bytes_cached = bytes_cached;
  stats.limit_bytes = state_->inner.stats().limit_bytes;
  return stats;
}

DFLOW_INLINE void PoolAllocator::trim() noexcept {
  const auto empty = [this](auto& lock, auto& lists, auto&& when_taken) {
    for (std::size_t i = 0; i < lists.size(); ++i) {
      detail::FreeList blocks;
      {
        detail::SpinGuard hold(lock);
        blocks = std::exchange(lists[i], {});
        when_taken(blocks.count * detail::SizeClass::bytes_of(i));
      }
      state_->return_to_inner(blocks, i);
    }
  };
  for (State::Shard& shard : state_->shards) empty(shard.lock, shard.free, [](std::size_t) {});
  State::Central& central = state_->central;
  empty(central.lock, central.free, [&](std::size_t bytes) { central.bytes_cached -= bytes; });
}

}  // namespace dflow
