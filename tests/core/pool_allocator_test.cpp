#include <dflow/core/memory/buffer.hpp>
#include <dflow/core/memory/huge_page_allocator.hpp>
#include <dflow/core/memory/pool_allocator.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

using namespace dflow;

TEST_CASE("a freed block is handed out again", "[pool_allocator]") {
  CpuAllocator inner;
  {
    PoolAllocator pool(inner);
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{4}, std::size_t{300}, std::size_t{40000}, std::size_t{5} << 20}) {
      void* first = pool.allocate(bytes);
      CHECK(reinterpret_cast<std::uintptr_t>(first) % 64 == 0);
      std::memset(first, 1, bytes);
      pool.deallocate(first, bytes);
      const std::uint64_t taken = inner.stats().num_allocations;
      void* second = pool.allocate(bytes);
      CHECK(second == first);
      CHECK(inner.stats().num_allocations == taken);
      pool.deallocate(second, bytes);
    }
    CHECK(pool.stats().num_allocations == 10);
    CHECK(pool.stats().bytes_in_use == 0);
    CHECK(pool.stats().bytes_cached == inner.stats().bytes_in_use);
    pool.trim();
    CHECK(pool.stats().bytes_cached == 0);
    CHECK(inner.stats().bytes_in_use == 0);
    pool.deallocate(pool.allocate(100), 100);
  }
  CHECK(inner.stats().bytes_in_use == 0);
}

TEST_CASE("blocks are at most a quarter larger than asked for", "[pool_allocator]") {
  CpuAllocator inner;
  for (std::size_t bytes = 257; bytes < 3000000; bytes += bytes / 7) {
    PoolAllocator pool(inner);
    const std::size_t before = inner.stats().bytes_in_use;
    void* block = pool.allocate(bytes);
    const std::size_t taken = inner.stats().bytes_in_use - before;
    CHECK(taken >= bytes);
    CHECK(taken <= bytes + bytes / 4);
    pool.deallocate(block, bytes);
  }
}

TEST_CASE("a tensor of a power of two takes its size and a header, whether cached before or not", "[pool_allocator]") {
  CpuAllocator inner;
  PoolAllocator pool(inner);
  for (int log2 = 21; log2 <= 26; ++log2) {
    const std::size_t bytes = std::size_t{1} << log2;
    for (const std::size_t less : {std::size_t{0}, std::size_t{1}}) {
      const BufferRef buffer = BufferRef::allocate(bytes - less, pool);
      CHECK(inner.stats().bytes_in_use - pool.stats().bytes_cached <= bytes + 4096);
      CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % Allocator::default_alignment == 0);
    }
    CHECK(pool.stats().bytes_cached <= bytes + 4096);
    pool.trim();
    CHECK(inner.stats().bytes_in_use == 0);
  }
}

TEST_CASE("what exceeds the cap goes back to the inner allocator", "[pool_allocator]") {
  CpuAllocator inner;
  PoolAllocator pool(inner, {.max_cached_bytes = std::size_t{1} << 20});
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(pool.allocate(std::size_t{512} << 10));
  for (void* block : blocks) pool.deallocate(block, std::size_t{512} << 10);
  CHECK(pool.stats().bytes_cached == std::size_t{1} << 20);
  CHECK(inner.stats().bytes_in_use == std::size_t{1} << 20);

  blocks.clear();
  for (int i = 0; i < 20000; ++i) blocks.push_back(pool.allocate(200));
  for (void* block : blocks) pool.deallocate(block, 200);
  CHECK(pool.stats().bytes_cached < std::size_t{2} << 20);
}

TEST_CASE("sizes that are no longer used make room for those that are", "[pool_allocator]") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  CpuAllocator inner;
  PoolAllocator pool(inner, {.max_cached_bytes = 4 * mib});
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(pool.allocate(mib));
  for (void* block : blocks) pool.deallocate(block, mib);
  CHECK(pool.stats().bytes_cached == 4 * mib);
  const std::uint64_t before = inner.stats().num_allocations;
  for (int step = 0; step < 100; ++step) {
    void* first = pool.allocate(100'000);
    void* second = pool.allocate(2 * mib);
    pool.deallocate(first, 100'000);
    pool.deallocate(second, 2 * mib);
    CHECK(pool.stats().bytes_cached <= 4 * mib);
  }
  CHECK(inner.stats().num_allocations == before + 2);
  // A block larger than the cap drives nothing out.
  const std::size_t cached = pool.stats().bytes_cached;
  pool.deallocate(pool.allocate(5 * mib), 5 * mib);
  CHECK(pool.stats().bytes_cached == cached);
}

TEST_CASE("trimming goes through to the allocators below", "[pool_allocator]") {
  CpuAllocator heap;
  HugePageAllocator huge(heap);
  LimitAllocator limit(huge, std::size_t{1} << 30);
  PoolAllocator pool(limit);
  Allocator& allocator = pool;
  allocator.deallocate(allocator.allocate(std::size_t{1} << 20), std::size_t{1} << 20);
  CHECK(heap.stats().bytes_in_use != 0);
  allocator.trim();
  CHECK(heap.stats().bytes_in_use == 0);
}

TEST_CASE("blocks outlive the pool and go back to what it took them from", "[pool_allocator]") {
  auto heap = std::make_shared<CpuAllocator>();
  const std::weak_ptr<CpuAllocator> alive = heap;
  auto pool = std::make_unique<PoolAllocator>(std::move(heap));
  BlockOwner& owner = pool->block_owner();
  constexpr std::size_t sizes[] = {0, 64, 1000, 32768, 40000, std::size_t{1} << 20};
  std::vector<void*> blocks;
  for (const std::size_t bytes : sizes) {
    pool->deallocate(pool->allocate(bytes), bytes);
    blocks.push_back(pool->allocate(bytes));
    void* cached = pool->allocate(bytes);
    std::memset(blocks.back(), 1, bytes);
    pool->deallocate(cached, bytes);
  }
  pool.reset();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    REQUIRE_FALSE(alive.expired());
    const std::size_t in_use = alive.lock()->stats().bytes_in_use;
    std::memset(blocks[i], 2, sizes[i]);
    std::thread([&] { owner.deallocate(blocks[i], sizes[i]); }).join();
    if (i + 1 < blocks.size()) CHECK(alive.lock()->stats().bytes_in_use < in_use);
  }
  CHECK(alive.expired());
  PoolAllocator unused(std::make_shared<CpuAllocator>());
  CHECK(status_of([] { return PoolAllocator(std::shared_ptr<Allocator>()).stats().bytes_cached; }).code() ==
        Code::invalid_argument);
}

TEST_CASE("cached blocks are given back before an allocation fails", "[pool_allocator]") {
  CpuAllocator cpu;
  LimitAllocator inner(cpu, std::size_t{1} << 20);
  PoolAllocator pool(inner);
  pool.deallocate(pool.allocate(std::size_t{700} << 10), std::size_t{700} << 10);
  void* block = pool.allocate(std::size_t{400} << 10);
  const Status status = status_of([&] { return pool.allocate(std::size_t{900} << 10); });
  CHECK(status.code() == Code::resource_exhausted);
  CHECK(pool.stats().bytes_in_use == std::size_t{400} << 10);
  CHECK(pool.stats().limit_bytes == std::size_t{1} << 20);
  pool.deallocate(block, std::size_t{400} << 10);
  CHECK(status_of([&] { return pool.allocate(~std::size_t{0}); }).code() == Code::resource_exhausted);
  CHECK(status_of([&] { return pool.allocate(8, 128); }).code() == Code::invalid_argument);
}

TEST_CASE("threads allocate, write, hand over and free at once", "[pool_allocator][stress]") {
  struct Block {
    unsigned char* bytes;
    std::size_t size;
    unsigned char mark;
  };
  CpuAllocator inner;
  PoolAllocator pool(inner, {.max_cached_bytes = std::size_t{4} << 20});
  std::mutex mutex;
  std::deque<Block> handed_over;
  std::atomic<int> corrupt{0};
  const auto check_and_free = [&](const Block& block) {
    for (std::size_t i = 0; i < block.size; i += 61) corrupt += block.bytes[i] != block.mark;
    pool.deallocate(block.bytes, block.size);
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 3000; ++i) {
        const std::size_t size = std::size_t{1} << (random() % 18);
        const Block block{static_cast<unsigned char*>(pool.allocate(size)), size, static_cast<unsigned char>(random())};
        std::memset(block.bytes, block.mark, size);
        Block taken = block;
        {
          std::lock_guard lock(mutex);
          handed_over.push_back(block);
          if (handed_over.size() < 50) continue;
          taken = handed_over.front();
          handed_over.pop_front();
        }
        check_and_free(taken);
        if (i % 1000 == 999) pool.trim();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Block& block : handed_over) check_and_free(block);
  CHECK(corrupt == 0);
  CHECK(pool.stats().bytes_in_use == 0);
  CHECK(pool.stats().num_allocations == 12000);
  pool.trim();
  CHECK(inner.stats().bytes_in_use == 0);
}
