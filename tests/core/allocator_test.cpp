#include <dflow/core/memory/allocator.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

using namespace dflow;

TEST_CASE("the CPU allocator aligns and counts", "[allocator]") {
  CpuAllocator allocator;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{1000}, std::size_t{3} << 20}) {
    for (const std::size_t alignment : {std::size_t{1}, std::size_t{64}, std::size_t{4096}}) {
      void* block = allocator.allocate(bytes, alignment);
      CHECK(reinterpret_cast<std::uintptr_t>(block) % std::max<std::size_t>(alignment, 64) == 0);
      std::memset(block, 1, bytes);
      CHECK(allocator.stats().bytes_in_use == bytes);
      allocator.deallocate(block, bytes);
    }
  }
  CHECK(allocator.stats().bytes_in_use == 0);
  CHECK(allocator.stats().peak_bytes_in_use == std::size_t{3} << 20);
  CHECK(allocator.stats().num_allocations == 15);
  allocator.deallocate(nullptr, 0);
}

TEST_CASE("more memory than there is gives ResourceExhausted with the bytes", "[allocator]") {
  CpuAllocator allocator;
  constexpr std::size_t absurd = std::numeric_limits<std::size_t>::max() / 4;
  const Status status = status_of([&] { return allocator.allocate(absurd); });
  CHECK(status.code() == Code::resource_exhausted);
  CHECK(status.message().find(std::to_string(absurd)) != std::string::npos);
  CHECK(status_of([&] { return allocator.allocate(std::numeric_limits<std::size_t>::max()); }).code() ==
        Code::resource_exhausted);
  CHECK(status_of([&] { return allocator.allocate(8, 96); }).code() == Code::invalid_argument);
  CHECK(allocator.stats().bytes_in_use == 0);
}

TEST_CASE("a limit refuses what would exceed it and goes on", "[allocator]") {
  CpuAllocator inner;
  LimitAllocator allocator(inner, 1000);
  void* block = allocator.allocate(600);
  const Status status = status_of([&] { return allocator.allocate(401); });
  CHECK(status.code() == Code::resource_exhausted);
  CHECK(status.message() == "allocating 401 bytes would exceed the limit of 1000 bytes, of which 600 are in use");
  void* rest = allocator.allocate(400);
  CHECK(allocator.stats().bytes_in_use == 1000);
  CHECK(allocator.stats().limit_bytes == 1000);
  allocator.deallocate(rest, 400);
  allocator.deallocate(block, 600);
  CHECK(allocator.stats().bytes_in_use == 0);
  CHECK(allocator.stats().peak_bytes_in_use == 1000);
  CHECK(inner.stats().bytes_in_use == 0);
}

TEST_CASE("a limit's account survives a failure of the inner allocator", "[allocator]") {
  CpuAllocator inner;
  LimitAllocator allocator(inner, std::numeric_limits<std::size_t>::max());
  CHECK(status_of([&] { return allocator.allocate(std::numeric_limits<std::size_t>::max() / 4); }).code() ==
        Code::resource_exhausted);
  CHECK(allocator.stats().bytes_in_use == 0);
}

TEST_CASE("an allocator that takes its memory from none is refused", "[allocator]") {
  CHECK(status_of([] { return LimitAllocator(std::shared_ptr<Allocator>(), 1).stats().bytes_in_use; }).code() ==
        Code::invalid_argument);
}

TEST_CASE("a limit keeps a shared inner allocator, and its blocks outlive it", "[allocator]") {
  auto inner = std::make_shared<CpuAllocator>();
  const std::weak_ptr<Allocator> alive = inner;
  auto allocator = std::make_unique<LimitAllocator>(std::move(inner), 1000);
  BlockOwner& owner = allocator->block_owner();
  void* block = allocator->allocate(600);
  void* other = allocator->allocate(0);
  allocator->deallocate(other, 0);
  allocator.reset();
  CHECK_FALSE(alive.expired());
  owner.deallocate(block, 600);
  CHECK(alive.expired());
  allocator = std::make_unique<LimitAllocator>(std::make_shared<CpuAllocator>(), 1000);
  allocator.reset();
}

TEST_CASE("a limit holds when threads race for it", "[allocator][stress]") {
  CpuAllocator inner;
  LimitAllocator allocator(inner, 1024);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        void* block = nullptr;
        if (status_of([&] { return block = allocator.allocate(400); }).ok()) allocator.deallocate(block, 400);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(allocator.stats().peak_bytes_in_use <= 1024);
  CHECK(allocator.stats().bytes_in_use == 0);
}
