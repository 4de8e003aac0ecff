#pragma once

#include <dflow/base/threads/spin_lock.hpp>
#include <dflow/core/memory/address_sanitizer.hpp>
#include <dflow/core/memory/allocator.ipp>
#include <dflow/core/memory/pool_allocator.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#if DFLOW_HAS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace dflow {

namespace detail {

/// Sizes of cached blocks: multiples of 64 up to 256, then four per power of two. From 2 MiB on each has
/// `header_bytes` more, for the header before a tensor. Without them the tensor would take the next class.
struct SizeClass {
  static constexpr std::size_t header_bytes = Allocator::default_alignment;
  static constexpr std::size_t min_with_header = huge_page_bytes;
  static constexpr int max_log2 = 46;
  static constexpr std::size_t max_bytes = std::size_t{1} << max_log2;
  static constexpr std::size_t count = 4 + (max_log2 - 8) * 4;
  static constexpr std::size_t num_small = 4 + (15 - 8) * 4;  ///< up to 32 KiB

  static constexpr std::size_t of(std::size_t bytes) noexcept {
    if (bytes <= 256) return bytes == 0 ? 0 : (bytes - 1) / 64;
    if (bytes > min_with_header) bytes = std::max(bytes - header_bytes, min_with_header);
    const std::size_t n = bytes - 1;
    const int log2 = static_cast<int>(std::bit_width(n)) - 1;
    return 4 + static_cast<std::size_t>(log2 - 8) * 4 + ((n >> (log2 - 2)) & 3);
  }
  static constexpr std::size_t bytes_of(std::size_t size_class) noexcept {
    if (size_class < 4) return (size_class + 1) * 64;
    const std::size_t above = size_class - 4;
    const std::size_t bytes = (above % 4 + 5) << (above / 4 + 6);
    return bytes < min_with_header ? bytes : bytes + header_bytes;
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
static_assert(SizeClass::of(SizeClass::min_with_header + 64) == SizeClass::of(SizeClass::min_with_header));
static_assert(SizeClass::bytes_of(SizeClass::of(SizeClass::min_with_header + 64)) == SizeClass::min_with_header + 64);
static_assert(SizeClass::of(SizeClass::min_with_header + 65) == SizeClass::of(SizeClass::min_with_header) + 1);

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

/// The shard of this thread among `count` shards (a power of two): the addresses of threads' thread blocks differ.
inline std::size_t shard_of_this_thread(std::size_t count) noexcept {
#if defined(__x86_64__) && defined(__linux__)
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

/// Held by the allocator, then by the blocks that are still out. They are counted under the locks that allocating and
/// freeing take anyway, and summed up when the allocator goes: from then on each block that comes back is counted down.
struct PoolAllocator::State final : BlockOwner {
  static constexpr std::size_t num_shards = 16;

  /// Counters of a shard may be negative on their own: a block may be freed in another shard. Their sums are right.
  struct Counters {
    std::int64_t num_allocations = 0;
    std::int64_t bytes_in_use = 0;
    std::int64_t num_returned = 0;  ///< deallocations that are over

    void add(std::size_t bytes) noexcept {
      num_allocations += 1;
      bytes_in_use += static_cast<std::int64_t>(bytes);
    }
    std::int64_t blocks_out() const noexcept { return num_allocations - num_returned; }
  };
  struct alignas(64) Part {
    detail::SpinLock lock;
    bool is_orphan = false;  ///< the allocator has gone: nothing is cached any more
    Counters counters;
  };
  struct Shard : Part {
    std::array<detail::FreeList, detail::SizeClass::num_small> free;
  };
  struct Central : Part {
    std::size_t bytes_cached = 0;
    std::array<detail::FreeList, detail::SizeClass::count> free;
    std::array<std::uint64_t, detail::SizeClass::count> last_used{};  ///< on a clock that ticks with each use
    std::uint64_t now = 0;
  };

  State(detail::InnerAllocator inner_allocator, PoolAllocatorOptions pool_options)
      : inner(std::move(inner_allocator)), options(pool_options) {
    if (!inner.allocator.is_host_memory()) {
      throw_error(Status::invalid_argument(str_cat("a pool cannot cache blocks of allocator ", inner.allocator.name(),
                                                   ": its memory is not the CPU's")));
    }
  }

  void* allocate(std::size_t bytes);
  void deallocate(void* block, std::size_t bytes) noexcept override;
  /// Gives all cached blocks back.
  void clear() noexcept;
  /// The last call of the allocator.
  void abandon() noexcept;

  detail::FreeBlock* take_small(std::size_t size_class, std::size_t bytes);
  void give_small(detail::FreeBlock* block, std::size_t size_class, std::size_t bytes) noexcept;
  detail::FreeBlock* take_large(std::size_t size_class, std::size_t bytes);
  void give_large(detail::FreeBlock* block, std::size_t size_class, std::size_t bytes) noexcept;
  /// Blocks of one class from the central lists; the caller holds the central lock.
  detail::FreeList take_central(std::size_t size_class, std::uint32_t wanted) noexcept;
  /// Keeps as many of `blocks` as fit under the cap; the caller holds the central lock.
  void keep_central(detail::FreeList& blocks, std::size_t size_class) noexcept;
  /// Keeps the blocks centrally, in place of others that have not been used for longer, or gives them back.
  void keep_or_return(detail::FreeList blocks, std::size_t size_class) noexcept;
  /// The class with cached blocks, other than `used`, that was last used the longest ago, or `used` if there is none.
  std::size_t least_recently_used(std::size_t used) const noexcept;
  void return_to_inner(detail::FreeList blocks, std::size_t size_class) noexcept;
  void* allocate_inner(std::size_t size_class);
  /// Counts off a block after its deallocation is over. This object may be gone afterwards.
  void count_off(Part& part) noexcept;
  void remove_holder() noexcept {
    if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  detail::InnerAllocator inner;
  const PoolAllocatorOptions options;
  std::atomic<std::size_t> bytes_taken{0};
  std::atomic<std::size_t> peak_bytes_taken{0};
  std::atomic<std::int64_t> holders{0};  ///< of an orphan
  std::array<Shard, num_shards> shards;
  Central central;
};

PoolAllocator::PoolAllocator(std::unique_ptr<State> state) noexcept
    : Allocator(true, *state), state_(state.release()) {}

PoolAllocator::PoolAllocator(Allocator& inner, PoolAllocatorOptions options)
    : PoolAllocator(std::make_unique<State>(detail::InnerAllocator(inner), options)) {}

PoolAllocator::PoolAllocator(std::shared_ptr<Allocator> inner, PoolAllocatorOptions options)
    : PoolAllocator(std::make_unique<State>(detail::InnerAllocator(std::move(inner)), options)) {}

PoolAllocator::~PoolAllocator() { state_->abandon(); }

void PoolAllocator::State::abandon() noexcept {
  for (Shard& shard : shards) shard.lock.lock();
  central.lock.lock();
  std::int64_t blocks_out = central.counters.blocks_out();
  central.is_orphan = true;
  for (Shard& shard : shards) {
    blocks_out += shard.counters.blocks_out();
    shard.is_orphan = true;
  }
  holders.store(blocks_out + 1, std::memory_order_relaxed);
  central.lock.unlock();
  for (Shard& shard : shards) shard.lock.unlock();
  clear();
  remove_holder();
}

void PoolAllocator::State::count_off(Part& part) noexcept {
  {
    const detail::SpinGuard hold(part.lock);
    if (!part.is_orphan) {
      part.counters.num_returned += 1;
      return;
    }
  }
  remove_holder();
}

detail::FreeList PoolAllocator::State::take_central(std::size_t size_class, std::uint32_t wanted) noexcept {
  central.last_used[size_class] = ++central.now;
  detail::FreeList taken = central.free[size_class].split(wanted);
  central.bytes_cached -= taken.count * detail::SizeClass::bytes_of(size_class);
  return taken;
}

void PoolAllocator::State::keep_central(detail::FreeList& blocks, std::size_t size_class) noexcept {
  const std::size_t block_bytes = detail::SizeClass::bytes_of(size_class);
  central.last_used[size_class] = ++central.now;
  while (blocks.first != nullptr && block_bytes <= options.max_cached_bytes - central.bytes_cached) {
    central.free[size_class].push(blocks.pop());
    central.bytes_cached += block_bytes;
  }
}

std::size_t PoolAllocator::State::least_recently_used(std::size_t used) const noexcept {
  std::size_t oldest = used;
  for (std::size_t i = 0; i < central.free.size(); ++i) {
    if (central.free[i].first != nullptr && central.last_used[i] < central.last_used[oldest]) oldest = i;
  }
  return oldest;
}

void PoolAllocator::State::keep_or_return(detail::FreeList blocks, std::size_t size_class) noexcept {
  const std::size_t block_bytes = detail::SizeClass::bytes_of(size_class);
  while (blocks.first != nullptr && block_bytes <= options.max_cached_bytes) {
    detail::FreeList victims;
    std::size_t victim_class = size_class;
    {
      const detail::SpinGuard hold(central.lock);
      if (central.is_orphan) break;
      keep_central(blocks, size_class);
      if (blocks.first == nullptr) return;
      victim_class = least_recently_used(size_class);
      if (victim_class == size_class) break;
      const std::size_t victim_bytes = detail::SizeClass::bytes_of(victim_class);
      victims = central.free[victim_class].split(static_cast<std::uint32_t>((block_bytes - 1) / victim_bytes + 1));
      central.bytes_cached -= victims.count * victim_bytes;
    }
    return_to_inner(victims, victim_class);
  }
  return_to_inner(blocks, size_class);
}

void PoolAllocator::State::return_to_inner(detail::FreeList blocks, std::size_t size_class) noexcept {
  const std::size_t block_bytes = detail::SizeClass::bytes_of(size_class);
  bytes_taken.fetch_sub(blocks.count * block_bytes, std::memory_order_relaxed);
  while (detail::FreeBlock* block = blocks.pop()) {
    detail::mark_in_use(block, block_bytes);
    inner.owner.deallocate(block, block_bytes);
  }
}

void* PoolAllocator::State::allocate_inner(std::size_t size_class) {
  const std::size_t block_bytes = detail::SizeClass::bytes_of(size_class);
  void* block = nullptr;
  try {
    block = detail::allocate_from(inner.allocator, block_bytes);
  } catch (const Error&) {
    clear();
    inner.allocator.trim();
    block = detail::allocate_from(inner.allocator, block_bytes);
  }
  const std::size_t taken = bytes_taken.fetch_add(block_bytes, std::memory_order_relaxed) + block_bytes;
  detail::raise_to(peak_bytes_taken, taken);
  return block;
}

detail::FreeBlock* PoolAllocator::State::take_small(std::size_t size_class, std::size_t bytes) {
  Shard& shard = shards[detail::shard_of_this_thread(num_shards)];
  detail::SpinGuard hold(shard.lock);
  detail::FreeList& free = shard.free[size_class];
  if (free.first == nullptr) [[unlikely]] {
    detail::SpinGuard hold_central(central.lock);
    free = take_central(size_class, detail::SizeClass::shard_capacity(size_class) / 2);
  }
  shard.counters.add(bytes);
  return free.pop();
}

void PoolAllocator::State::give_small(detail::FreeBlock* block, std::size_t size_class, std::size_t bytes) noexcept {
  Shard& shard = shards[detail::shard_of_this_thread(num_shards)];
  detail::FreeList excess;
  {
    detail::SpinGuard hold(shard.lock);
    shard.counters.bytes_in_use -= static_cast<std::int64_t>(bytes);
    if (!shard.is_orphan) [[likely]] {
      detail::FreeList& free = shard.free[size_class];
      free.push(block);
      if (free.count <= detail::SizeClass::shard_capacity(size_class)) [[likely]] {
        shard.counters.num_returned += 1;
        return;
      }
      excess = free.split(free.count / 2);
    } else {
      excess.push(block);
    }
  }
  keep_or_return(excess, size_class);
  count_off(shard);
}

detail::FreeBlock* PoolAllocator::State::take_large(std::size_t size_class, std::size_t bytes) {
  detail::SpinGuard hold(central.lock);
  central.counters.add(bytes);
  return take_central(size_class, 1).first;
}

void PoolAllocator::State::give_large(detail::FreeBlock* block, std::size_t size_class, std::size_t bytes) noexcept {
  detail::FreeList excess;
  excess.push(block);
  {
    detail::SpinGuard hold(central.lock);
    central.counters.bytes_in_use -= static_cast<std::int64_t>(bytes);
    if (!central.is_orphan) keep_central(excess, size_class);
    if (excess.first == nullptr) {
      central.counters.num_returned += 1;
      return;
    }
  }
  keep_or_return(excess, size_class);
  count_off(central);
}

void* PoolAllocator::State::allocate(std::size_t bytes) {
  const std::size_t size_class = detail::SizeClass::of(bytes);
  const bool is_small = size_class < detail::SizeClass::num_small;
  void* block = is_small ? take_small(size_class, bytes) : take_large(size_class, bytes);
  if (block != nullptr) [[likely]] {
    detail::mark_in_use(block, detail::SizeClass::bytes_of(size_class));
    return block;
  }
  try {
    return allocate_inner(size_class);
  } catch (...) {
    const detail::SpinGuard hold(central.lock);
    central.counters.num_allocations -= 1;
    central.counters.bytes_in_use -= static_cast<std::int64_t>(bytes);
    throw;
  }
}

void PoolAllocator::State::deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  const std::size_t size_class = detail::SizeClass::of(bytes);
  detail::mark_cached(block, detail::SizeClass::bytes_of(size_class));
  auto* free = ::new (block) detail::FreeBlock;
  if (size_class < detail::SizeClass::num_small) {
    give_small(free, size_class, bytes);
  } else {
    give_large(free, size_class, bytes);
  }
}

void* PoolAllocator::allocate(std::size_t bytes, std::size_t alignment) {
  if (alignment > default_alignment || (alignment & (alignment - 1)) != 0) [[unlikely]] {
    detail::throw_bad_alignment(name(), alignment);
  }
  if (bytes > detail::SizeClass::max_bytes) [[unlikely]]
    detail::throw_out_of_memory(name(), bytes);
  return state_->allocate(bytes);
}

void PoolAllocator::deallocate(void* block, std::size_t bytes) noexcept { state_->deallocate(block, bytes); }

AllocatorStats PoolAllocator::stats() const noexcept {
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
  stats.limit_bytes = state_->inner.allocator.stats().limit_bytes;
  return stats;
}

void PoolAllocator::State::clear() noexcept {
  const auto empty = [this](auto& lock, auto& lists, auto&& when_taken) {
    for (std::size_t i = 0; i < lists.size(); ++i) {
      detail::FreeList blocks;
      {
        detail::SpinGuard hold(lock);
        blocks = std::exchange(lists[i], {});
        when_taken(blocks.count * detail::SizeClass::bytes_of(i));
      }
      return_to_inner(blocks, i);
    }
  };
  for (Shard& shard : shards) empty(shard.lock, shard.free, [](std::size_t) {});
  empty(central.lock, central.free, [&](std::size_t bytes) { central.bytes_cached -= bytes; });
}

void PoolAllocator::trim() noexcept {
  state_->clear();
  state_->inner.allocator.trim();
}

}  // namespace dflow
