#include <dflow/core/huge_page_allocator.hpp>

#include "catch.hpp"
#include "core/status_of.hpp"

#include <cstdint>
#include <cstring>
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
