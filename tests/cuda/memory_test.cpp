#include "cuda/gpu_that_is_none.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/grid/emulated_grid.hpp>
#include <dflow/kernels/state/device_files.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

TEST_CASE("a GPU's memory is used again, bounded, and given back when asked", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    CudaDevice device({.driver = driver, .memory_limit_bytes = 4096});
    Allocator& memory = *device.context().allocator;
    void* const first = memory.allocate(1000);
    memory.deallocate(first, 1000);
    CHECK(memory.stats().bytes_cached == 1024);
    CHECK(memory.allocate(1024) == first);
    memory.deallocate(first, 1024);
    void* const most = memory.allocate(4096);  // what is cached makes room
    try {
      memory.allocate(1);
      FAIL("beyond the limit");
    } catch (const Error& error) {
      CHECK(error.code() == Code::resource_exhausted);
      CHECK_THAT(error.what(), Catch::Matchers::Contains("4096"));
    }
    CHECK_THROWS_AS(memory.allocate(1, 512), Error);
    memory.deallocate(most, 4096);
    device.release_cached_memory();
    CHECK(memory.stats().bytes_cached == 0);
    CHECK(memory.stats().bytes_in_use == 0);
  }
  check_end(*driver);
}

TEST_CASE("a GPU's kernels use the files that the device was given", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    const auto files = std::make_shared<MemoryFileSystem>();
    const CudaDevice device({.driver = driver, .files = files});
    CHECK(device_files(device.context()) == files);
    CHECK(device_files(CudaDevice({.driver = driver}).context()) != files);
    for (const auto& each : cuda_devices({.driver = driver, .files = files})) {
      CHECK(device_files(each->context()) == files);
    }
  }
  check_end(*driver);
}

TEST_CASE("the uses of memory have each block that holds elements in the device's memory, however many they are",
          "[cuda]") {
  const Tensor<bool> one(Shape{});
  cuda::MemoryUses uses;
  uses.add(AnyTensor(one), false);
  uses.add(AnyTensor(Tensor<float>({0})), true);
  uses.add(AnyTensor(Tensor<std::string>(Shape{2})), true);
  REQUIRE(uses.all().size() == 1);
  CHECK(uses.all()[0].block == one.data());
  CHECK(uses.all()[0].bytes == 1);
  CHECK(!uses.all()[0].writes);
  for (std::size_t count = 2; count <= 70; ++count) {
    uses.add(one.data(), count, true);
    REQUIRE(uses.all().size() == count);
    for (std::size_t i = 0; i < count; ++i) REQUIRE(uses.all()[i].bytes == i + 1);
    CHECK(uses.all().back().writes);
  }
}

namespace {

/// Each block turns its part of x around, by way of memory that its threads share.
struct TurnAround {
  struct Args {
    std::int64_t* x;
  };
  static constexpr bool has_barriers = true;

  template <class Thread>
  static void run(const Thread& thread, const Args& args) {
    struct Shared {
      std::int64_t values[64];
    };
    auto& shared = thread.template shared<Shared>();
    for (int again = 0; again < 3; ++again) {
      shared.values[thread.index_in_block()] = args.x[thread.index()];
      thread.barrier();
      args.x[thread.index()] = shared.values[thread.threads() - 1 - thread.index_in_block()];
      thread.barrier();
    }
  }
};

/// Thread 0 comes to no barrier.
struct LeavesOneOut {
  struct Args {};
  static constexpr bool has_barriers = true;
  template <class Thread>
  static void run(const Thread& thread, const Args&) {
    if (thread.index_in_block() != 0) thread.barrier();
  }
};

}  // namespace

TEST_CASE("threads of an emulated block meet at barriers, in whatever order they come", "[cuda]") {
  for (std::uint64_t order = 0; order < 9; ++order) {
    std::vector<std::int64_t> x(3 * 64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int64_t>(i);
    const TurnAround::Args args{x.data()};
    cuda::emulate<TurnAround>({3, 64}, &args, order);
    for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(x[i] == static_cast<std::int64_t>(i / 64 * 64 + 63 - i % 64));
    const LeavesOneOut::Args none;
    CHECK_THROWS_AS(cuda::emulate<LeavesOneOut>({1, 32}, &none, order), Error);
  }
}
