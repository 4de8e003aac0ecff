#include <dflow/core/memory/buffer.hpp>
#include <dflow/core/memory/huge_page_allocator.hpp>
#include <dflow/core/memory/pool_allocator.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

using namespace dflow;

namespace {
/// Stands for a device's memory: counts, and says that the CPU must not touch it.
class FarMemory final : public Allocator {
 public:
  FarMemory() : Allocator(false) {}
  void* allocate(std::size_t bytes, std::size_t alignment) override { return cpu_.allocate(bytes, alignment); }
  void deallocate(void* block, std::size_t bytes) noexcept override { cpu_.deallocate(block, bytes); }
  std::string_view name() const noexcept override { return "device"; }
  AllocatorStats stats() const noexcept override { return cpu_.stats(); }

 private:
  CpuAllocator cpu_;
};

/// Returns null from some block on, where it should throw.
class NullAllocator final : public Allocator {
 public:
  explicit NullAllocator(int blocks, bool is_host_memory = true) : Allocator(is_host_memory), blocks_left(blocks) {}
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    return blocks_left-- > 0 ? cpu_.allocate(bytes, alignment) : nullptr;
  }
  void deallocate(void* block, std::size_t bytes) noexcept override { cpu_.deallocate(block, bytes); }
  std::string_view name() const noexcept override { return "empty-handed"; }
  AllocatorStats stats() const noexcept override { return cpu_.stats(); }

  int blocks_left;

 private:
  CpuAllocator cpu_;
};
}  // namespace

TEST_CASE("a buffer is freed with its last handle", "[buffer]") {
  CpuAllocator allocator;
  {
    BufferRef a = BufferRef::allocate(100, allocator);
    std::memset(a->data(), 7, 100);
    CHECK(reinterpret_cast<std::uintptr_t>(a->data()) % 64 == 0);
    CHECK(a->capacity_bytes() == 100);
    CHECK_FALSE(a->is_borrowed());
    CHECK(a.is_unique());
    BufferRef b = a;
    CHECK(b == a);
    CHECK_FALSE(a.is_unique());
    CHECK(a.use_count() == 2);
    BufferRef c = std::move(b);
    CHECK_FALSE(b);
    c = static_cast<const BufferRef&>(c);
    c = std::move(*&c);
    CHECK(c.use_count() == 2);
    a = BufferRef();
    CHECK(c.is_unique());
    CHECK(allocator.stats().num_allocations == 1);
  }
  CHECK(allocator.stats().bytes_in_use == 0);
  CHECK_FALSE(BufferRef().is_unique());
}

TEST_CASE("strings in a buffer are constructed and destroyed", "[buffer]") {
  CpuAllocator allocator;
  {
    BufferRef buffer = BufferRef::allocate_strings(3, allocator);
    auto* strings = static_cast<std::string*>(buffer->data());
    strings[0] = std::string(1000, 'x');
    strings[2] = "short";
    CHECK(strings[1].empty());
  }
  CHECK(allocator.stats().bytes_in_use == 0);
}

TEST_CASE("external memory is released once, by the last handle", "[buffer]") {
  int bytes[4] = {1, 2, 3, 4};
  int released = 0;
  auto owner = std::make_unique<int>(5);
  {
    const BufferRef a = BufferRef::external(
        bytes, sizeof bytes, [&released, owner = std::move(owner)] { released += *owner; }, Lending::view);
    const BufferRef b = a;
    CHECK(a->data() == bytes);
    CHECK(released == 0);
  }
  CHECK(released == 5);
}

TEST_CASE("external memory is the library's own only if it was given with a way to hand it back", "[buffer]") {
  int bytes[4] = {};
  const BufferRef read_only = BufferRef::external(
      bytes, sizeof bytes, [] {}, Lending::read_only);
  CHECK(read_only->is_read_only());
  CHECK(read_only->is_borrowed());
  CHECK_FALSE(read_only.is_unique());
  const BufferRef view = BufferRef::external(
      bytes, sizeof bytes, [] {}, Lending::view);
  CHECK_FALSE(view->is_read_only());
  CHECK(view->is_borrowed());
  CHECK_FALSE(view.is_unique());
  const BufferRef given = BufferRef::external(
      bytes, sizeof bytes, [] {}, Lending::given);
  CHECK_FALSE(given->is_borrowed());
  CHECK(given.is_unique());
  const BufferRef forgotten = BufferRef::external(bytes, sizeof bytes, {}, Lending::given);
  CHECK(forgotten->is_borrowed());
  CHECK_FALSE(forgotten.is_unique());
}

namespace {
/// An allocator of a user's: counts how many of it there are, and is its own block owner.
class UsersAllocator final : public Allocator {
 public:
  explicit UsersAllocator(int& alive) : alive_(alive) { ++alive_; }
  ~UsersAllocator() override { --alive_; }
  void* allocate(std::size_t bytes, std::size_t alignment) override { return cpu_.allocate(bytes, alignment); }
  void deallocate(void* block, std::size_t bytes) noexcept override { cpu_.deallocate(block, bytes); }
  std::string_view name() const noexcept override { return "user's"; }
  AllocatorStats stats() const noexcept override { return cpu_.stats(); }

 private:
  int& alive_;
  CpuAllocator cpu_;
};

constexpr std::size_t sizes[] = {0, 100, std::size_t{20} << 10, std::size_t{1} << 20, std::size_t{3} << 20};
}  // namespace

TEST_CASE("a buffer keeps an allocator that belongs to a shared_ptr", "[buffer]") {
  int alive = 0;
  auto allocator = std::make_shared<UsersAllocator>(alive);
  std::vector<BufferRef> buffers;
  for (const std::size_t bytes : sizes) buffers.push_back(BufferRef::allocate(bytes, *allocator));
  buffers.push_back(BufferRef::allocate_strings(2000, *allocator));
  allocator.reset();
  CHECK(alive == 1);
  for (BufferRef& buffer : buffers) {
    std::memset(buffer->data(), 0, buffer == buffers.back() ? 0 : buffer->capacity_bytes());
  }
  buffers.resize(1);
  CHECK(alive == 1);
  buffers.clear();
  CHECK(alive == 0);
}

TEST_CASE("buffers outlive a pool, its limit and what they take their memory from", "[buffer]") {
  int alive = 0;
  std::vector<BufferRef> buffers;
  {
    auto heap = std::make_shared<UsersAllocator>(alive);
    auto huge = std::make_shared<HugePageAllocator>(heap);
    auto pool = std::make_shared<PoolAllocator>(huge);
    LimitAllocator limit(pool, std::size_t{100} << 20);
    heap.reset();
    huge.reset();
    pool.reset();
    for (int round = 0; round < 3; ++round) {
      for (const std::size_t bytes : sizes) buffers.push_back(BufferRef::allocate(bytes, limit));
      buffers.push_back(BufferRef::allocate_strings(5000, limit));
    }
    buffers.erase(buffers.begin(), buffers.begin() + 6);
  }
  CHECK(alive == 1);
  for (const BufferRef& buffer : buffers) CHECK(buffer->data() != nullptr);
  buffers.clear();
  CHECK(alive == 0);
}

TEST_CASE("a buffer of a power of two takes no more than that and a header", "[buffer]") {
  for (std::size_t bytes = std::size_t{32} << 10; bytes <= std::size_t{16} << 20; bytes *= 2) {
    CpuAllocator heap;
    {
      PoolAllocator pool(heap);
      std::vector<BufferRef> buffers;
      for (int i = 0; i < 10; ++i) buffers.push_back(BufferRef::allocate(bytes, pool));
      CHECK(heap.stats().bytes_in_use <= 10 * (bytes + sizeof(Buffer)));
      for (const BufferRef& buffer : buffers) CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64 == 0);
    }
    CHECK(heap.stats().bytes_in_use == 0);
  }
}

TEST_CASE("the header of device memory lies elsewhere", "[buffer]") {
  FarMemory allocator;
  {
    const BufferRef buffer = BufferRef::allocate(256, allocator);
    CHECK(allocator.stats().bytes_in_use == 256);
  }
  CHECK(allocator.stats().bytes_in_use == 0);
  CHECK(status_of([&] { return BufferRef::allocate_strings(1, allocator).use_count(); }).code() ==
        Code::invalid_argument);
}

TEST_CASE("a failed allocation is an error and leaves nothing behind", "[buffer]") {
  CpuAllocator cpu;
  LimitAllocator allocator(cpu, 1000);
  CHECK(status_of([&] { return BufferRef::allocate(1000, allocator).use_count(); }).code() == Code::resource_exhausted);
  CHECK(status_of([&] { return BufferRef::allocate(~std::size_t{0}, allocator).use_count(); }).code() ==
        Code::invalid_argument);
  CHECK(status_of([&] { return BufferRef::allocate_strings(~std::size_t{0} / 4, allocator).use_count(); }).code() ==
        Code::invalid_argument);
  CHECK(allocator.stats().bytes_in_use == 0);
}

TEST_CASE("an allocator that gives null has no memory, and the error names it", "[buffer]") {
  NullAllocator none(0), device(0, false);
  for (Allocator* allocator : {&none, &device}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, std::size_t{1} << 20}) {
      const Status status = status_of([&] { BufferRef::allocate(bytes, *allocator); });
      CHECK(status.code() == Code::resource_exhausted);
      CHECK(status.message().find("empty-handed") != std::string::npos);
    }
  }
  CHECK(status_of([&] { BufferRef::allocate_strings(3, none); }).code() == Code::resource_exhausted);

  NullAllocator one(1);  // enough for the bytes of a buffer whose header lies apart, not for that
  CHECK(status_of([&] { BufferRef::allocate(std::size_t{1} << 20, one); }).code() == Code::resource_exhausted);
  CHECK(one.stats().num_allocations == 1);
  CHECK(one.stats().bytes_in_use == 0);
}

TEST_CASE("allocators that take their memory from one that gives null have none either", "[buffer]") {
  NullAllocator none(0);
  LimitAllocator limit(none, std::size_t{1} << 30);
  PoolAllocator pool(none);
  HugePageAllocator pages(none);
  for (Allocator* allocator : std::initializer_list<Allocator*>{&limit, &pool, &pages}) {
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{1} << 20, std::size_t{8} << 20}) {
      CHECK(status_of([&] { BufferRef::allocate(bytes, *allocator); }).code() == Code::resource_exhausted);
    }
    CHECK(allocator->stats().bytes_in_use == 0);
    CHECK(allocator->stats().num_allocations == 0);
  }
  none.blocks_left = 1;
  CHECK(limit.stats().bytes_in_use == 0);
  CHECK_NOTHROW(BufferRef::allocate(100, limit));
}

TEST_CASE("bytes without memory for their header are given back", "[buffer]") {
  constexpr std::size_t bytes = std::size_t{64} << 10;
  CpuAllocator cpu;
  LimitAllocator allocator(cpu, bytes + sizeof(Buffer) - 1);
  CHECK(status_of([&] { return BufferRef::allocate(bytes, allocator).use_count(); }).code() ==
        Code::resource_exhausted);
  CHECK(allocator.stats().bytes_in_use == 0);
}

TEST_CASE("threads free buffers while their pool goes", "[buffer][stress]") {
  for (int round = 0; round < 100; ++round) {
    int alive = 0;
    {
      auto heap = std::make_shared<UsersAllocator>(alive);
      auto pool = std::make_unique<PoolAllocator>(std::make_shared<HugePageAllocator>(std::move(heap)),
                                                  PoolAllocatorOptions{.max_cached_bytes = std::size_t{1} << 20});
      std::vector<std::thread> threads;
      std::atomic<int> ready{0};
      for (int t = 0; t < 3; ++t) {
        std::vector<BufferRef> mine;
        for (int i = 0; i < 60; ++i) {
          mine.push_back(BufferRef::allocate(i % 3 == 0 ? std::size_t{300} << 10 : std::size_t{30} << 10, *pool));
        }
        threads.emplace_back([buffers = std::move(mine), &ready]() mutable {
          ++ready;
          buffers.clear();
        });
      }
      while (ready == 0) std::this_thread::yield();
      pool.reset();
      for (std::thread& thread : threads) thread.join();
    }
    CHECK(alive == 0);
  }
}

TEST_CASE("threads share handles; each write happens before the release", "[buffer][stress]") {
  CpuAllocator allocator;
  std::atomic<int> num_unique{0};
  for (int round = 0; round < 200; ++round) {
    BufferRef buffer = BufferRef::allocate(4 * sizeof(int), allocator);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([mine = buffer, t, &num_unique]() mutable {
        static_cast<int*>(mine->data())[t] = t;
        for (int i = 0; i < 50; ++i) {
          BufferRef copy = mine;
          BufferRef moved = std::move(copy);
          mine = moved;
        }
        // A thread that finds itself alone may read and write everything.
        if (mine.is_unique()) {
          ++num_unique;
          for (int i = 0; i < 4; ++i) static_cast<int*>(mine->data())[i] += 1;
        }
      });
    }
    buffer = BufferRef();
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(num_unique <= 200);
  CHECK(allocator.stats().bytes_in_use == 0);
}
