#include <dflow/core/buffer.hpp>

#include "catch.hpp"
#include "core/status_of.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

using namespace dflow;

namespace {
/// Stands for a device's memory: counts, and says that the CPU must not touch it.
class DeviceMemory final : public Allocator {
 public:
  DeviceMemory() : Allocator(false) {}
  void* allocate(std::size_t bytes, std::size_t alignment) override { return cpu_.allocate(bytes, alignment); }
  void deallocate(void* block, std::size_t bytes) noexcept override { cpu_.deallocate(block, bytes); }
  std::string_view name() const noexcept override { return "device"; }
  AllocatorStats stats() const noexcept override { return cpu_.stats(); }

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
    CHECK(a->allocator() == &allocator);
    CHECK(a.is_unique());
    BufferRef b = a;
    CHECK(b == a);
    CHECK_FALSE(a.is_unique());
    CHECK(a.use_count() == 2);
    BufferRef c = std::move(b);
    CHECK_FALSE(b);
    c = c;
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
    const BufferRef a =
        BufferRef::external(bytes, sizeof bytes, [&released, owner = std::move(owner)] { released += *owner; });
    const BufferRef b = a;
    CHECK(a->data() == bytes);
    CHECK(a->allocator() == nullptr);
    CHECK(released == 0);
  }
  CHECK(released == 5);
  CHECK(BufferRef::external(bytes, sizeof bytes, {}).is_unique());
}

TEST_CASE("a read-only buffer is never unique", "[buffer]") {
  int bytes[4] = {};
  const BufferRef buffer = BufferRef::external(bytes, sizeof bytes, {}, true);
  CHECK(buffer->is_read_only());
  CHECK_FALSE(buffer.is_unique());
}

TEST_CASE("the header of device memory lies elsewhere", "[buffer]") {
  DeviceMemory allocator;
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
        // Whoever finds itself alone may read and write everything.
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
