#include <dflow/core/memory/address_sanitizer.hpp>
#include <dflow/core/memory/huge_page_allocator.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;

/// A block filled with a byte of its own.
struct Filled {
  unsigned char* at;
  std::size_t bytes;
  unsigned char value;
  Filled(Allocator& allocator, std::size_t n, unsigned char v)
      : at(static_cast<unsigned char*>(allocator.allocate(n))), bytes(n), value(v) {
    std::memset(at, v, n);
  }
  [[nodiscard]] bool is_whole() const {
    for (std::size_t i = 0; i < bytes; i += 509) {
      if (at[i] != value) return false;
    }
    return at[bytes - 1] == value;
  }
};

}  // namespace

TEST_CASE("blocks of every size are aligned, distinct and come back", "[huge_page_allocator]") {
  CpuAllocator heap;
  {
    HugePageAllocator allocator(heap);
    std::vector<Filled> blocks;
    std::size_t sum = 0;
    for (const std::size_t bytes : {std::size_t{1}, 127 * kib, 128 * kib, 129 * kib, 500 * kib, mib, 1900 * kib,
                                    2 * mib - 1, 2 * mib, 2 * mib + 1, 7 * mib + 3}) {
      for (int i = 0; i < 3; ++i) {
        blocks.emplace_back(allocator, bytes, static_cast<unsigned char>(blocks.size() + 1));
        sum += bytes;
      }
    }
    for (const Filled& block : blocks) {
      CHECK(reinterpret_cast<std::uintptr_t>(block.at) % Allocator::default_alignment == 0);
      CHECK(block.is_whole());
    }
    CHECK(allocator.stats().bytes_in_use == sum);
    CHECK(allocator.stats().num_allocations == blocks.size());
    for (const Filled& block : blocks) allocator.deallocate(block.at, block.bytes);
    CHECK(allocator.stats().bytes_in_use == 0);
    CHECK(allocator.stats().peak_bytes_in_use == sum);
    CHECK(heap.stats().bytes_in_use <= 2 * mib);
  }
  CHECK(heap.stats().bytes_in_use == 0);
}

TEST_CASE("an alignment beyond a part of a chunk is kept", "[huge_page_allocator]") {
  CpuAllocator heap;
  HugePageAllocator allocator(heap);
  for (std::size_t alignment = 64; alignment <= 2 * mib; alignment *= 2) {
    void* block = allocator.allocate(200 * kib, alignment);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    allocator.deallocate(block, 200 * kib);
  }
  CHECK(status_of([&] { return allocator.allocate(200 * kib, 96); }).code() == Code::invalid_argument);
}

TEST_CASE("a heap that is full is an error and nothing is lost", "[huge_page_allocator]") {
  CpuAllocator heap;
  LimitAllocator inner(heap, 2560 * kib);
  HugePageAllocator allocator(inner);
  Filled first(allocator, 1500 * kib, 1);
  CHECK(status_of([&] { return allocator.allocate(1500 * kib); }).code() == Code::resource_exhausted);
  Filled second(allocator, 300 * kib, 2);
  CHECK(first.is_whole());
  CHECK(second.is_whole());
  allocator.deallocate(first.at, first.bytes);
  allocator.deallocate(second.at, second.bytes);
  CHECK(allocator.stats().bytes_in_use == 0);
}

TEST_CASE("blocks of a power of two leave no gap in their chunks", "[huge_page_allocator]") {
  for (const std::size_t bytes : {128 * kib, 256 * kib, 512 * kib, mib}) {
    CpuAllocator heap;
    HugePageAllocator allocator(heap);
    std::vector<void*> blocks;
    for (int i = 0; i < 64; ++i) blocks.push_back(allocator.allocate(bytes));
    CHECK(heap.stats().bytes_in_use == 64 * bytes);
    for (void* block : blocks) allocator.deallocate(block, bytes);
  }
}

TEST_CASE("gaps are filled, the tightest first, before a chunk is taken", "[huge_page_allocator]") {
  if (DFLOW_HAS_ADDRESS_SANITIZER != 0) return;  // everything is passed on
  CpuAllocator heap;
  HugePageAllocator allocator(heap);
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(allocator.allocate(512 * kib));  // four chunks
  allocator.deallocate(blocks[1], 512 * kib);                                    // a gap of one
  allocator.deallocate(blocks[4], 512 * kib);                                    // a gap of two
  allocator.deallocate(blocks[5], 512 * kib);
  void* one = allocator.allocate(512 * kib);
  CHECK(one == blocks[1]);
  void* two = allocator.allocate(mib);
  CHECK(two == blocks[4]);
  CHECK(heap.stats().bytes_in_use == 8 * mib);
  allocator.deallocate(one, 512 * kib);
  allocator.deallocate(two, mib);
  for (int i = 0; i < 16; ++i) {
    if (i != 1 && i != 4 && i != 5) allocator.deallocate(blocks[static_cast<std::size_t>(i)], 512 * kib);
  }
  CHECK(heap.stats().bytes_in_use == 2 * mib);
  allocator.trim();
  CHECK(heap.stats().bytes_in_use == 0);
}

namespace {
/// Hands out addresses with nothing behind them.
class AddressesOnly final : public Allocator {
 public:
  void* allocate(std::size_t bytes, std::size_t) override {
    in_use_ += bytes;
    next_ += (bytes + 2 * mib - 1) / (2 * mib) * (2 * mib);
    return reinterpret_cast<void*>(next_);
  }
  void deallocate(void*, std::size_t bytes) noexcept override { in_use_ -= bytes; }
  std::string_view name() const noexcept override { return "addresses"; }
  AllocatorStats stats() const noexcept override { return {.bytes_in_use = in_use_}; }

 private:
  std::uintptr_t next_ = std::uintptr_t{1} << 40;
  std::size_t in_use_ = 0;
};
}  // namespace

TEST_CASE("a hundred thousand blocks come and go beside as many chunks", "[huge_page_allocator]") {
  AddressesOnly inner;
  {
    HugePageAllocator allocator(inner);
    std::vector<void*> blocks;
    for (int i = 0; i < 100'000; ++i) blocks.push_back(allocator.allocate(1200 * kib));
    for (int i = 0; i < 100'000; ++i) allocator.deallocate(allocator.allocate(1100 * kib), 1100 * kib);
    for (void* block : blocks) allocator.deallocate(block, 1200 * kib);
    CHECK(allocator.stats().bytes_in_use == 0);
  }
  CHECK(inner.stats().bytes_in_use == 0);
}

TEST_CASE("blocks outlive the allocator that cut them", "[huge_page_allocator]") {
  auto heap = std::make_shared<CpuAllocator>();
  const std::weak_ptr<Allocator> alive = heap;
  auto allocator = std::make_unique<HugePageAllocator>(std::move(heap));
  BlockOwner& owner = allocator->block_owner();
  std::vector<Filled> blocks;
  for (const std::size_t bytes : {kib, 200 * kib, mib, 3 * mib}) blocks.emplace_back(*allocator, bytes, 9);
  allocator.reset();
  for (const Filled& block : blocks) {
    CHECK(block.is_whole());
    CHECK_FALSE(alive.expired());
    owner.deallocate(block.at, block.bytes);
  }
  CHECK(alive.expired());
}

TEST_CASE("threads cut, hand over and put back at once", "[huge_page_allocator][stress]") {
  CpuAllocator heap;
  {
    HugePageAllocator allocator(heap);
    std::mutex mutex;
    std::vector<Filled> shared;
    bool all_whole = true;
    const auto work = [&](unsigned seed) {
      std::mt19937 random(seed);
      for (int i = 0; i < 400; ++i) {
        Filled mine(allocator, 100 * kib + random() % (2 * mib), static_cast<unsigned char>(random()));
        const std::lock_guard lock(mutex);
        shared.push_back(mine);
        if (shared.size() < 20) continue;
        std::swap(shared[random() % shared.size()], shared.back());
        all_whole = all_whole && shared.back().is_whole();
        allocator.deallocate(shared.back().at, shared.back().bytes);
        shared.pop_back();
      }
    };
    {
      std::vector<std::jthread> threads;
      for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
    }
    for (const Filled& block : shared) {
      all_whole = all_whole && block.is_whole();
      allocator.deallocate(block.at, block.bytes);
    }
    CHECK(all_whole);
    CHECK(allocator.stats().bytes_in_use == 0);
  }
  CHECK(heap.stats().bytes_in_use == 0);
}
