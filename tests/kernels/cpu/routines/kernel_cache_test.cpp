#include <dflow/kernels/cpu/routines/kernel_cache.hpp>

#include "checks.hpp"

#include <dflow/core/memory/pool_allocator.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache_state.hpp>
#include <dflow/kernels/cpu/routines/math/gemm.hpp>
#include <dflow/kernels/cpu/routines/nn/conv2d.hpp>

#include <memory>
#include <vector>

namespace dflow::cpu {
namespace {

using namespace test;

TEST_CASE("scratch that was given back is used again, also after the cache was cleared", "[routines][kernel_cache]") {
  PoolAllocator allocator(default_cpu_allocator());
  KernelCache cache(allocator);
  for (int round = 0; round < 3; ++round) {
    const void* block = nullptr;
    { block = Scratch(&cache, 10000).as<char>(); }
    const std::size_t kept = cache.scratch_bytes();
    CHECK(kept >= 10000);
    { CHECK(Scratch(&cache, 9000).as<char>() == block); }
    CHECK(cache.scratch_bytes() == kept);
    CHECK(allocator.stats().bytes_in_use == kept);
    cache.clear();
    CHECK(cache.scratch_bytes() == 0);
    CHECK(allocator.stats().bytes_in_use == 0);
  }
}

TEST_CASE("idle scratch is bounded", "[routines][kernel_cache]") {
  KernelCache cache(default_cpu_allocator(), {.scratch_bytes = 100000});
  {
    std::vector<std::unique_ptr<Scratch>> blocks;
    for (int i = 0; i < 200; ++i) blocks.push_back(std::make_unique<Scratch>(&cache, std::size_t{20000}));
  }
  CHECK(cache.scratch_bytes() > 0);
  CHECK(cache.scratch_bytes() <= 100000);
  KernelCache none(default_cpu_allocator(), {.scratch_bytes = 0});
  { Scratch(&none, 20000); }
  CHECK(none.scratch_bytes() == 0);
}

TEST_CASE("the allocator's limit covers scratch, and idle scratch makes room before it is an error",
          "[routines][kernel_cache]") {
  LimitAllocator allocator(default_cpu_allocator(), 1 << 20);
  KernelCache cache(allocator);
  { const Scratch a(&cache, 50000), b(&cache, 50000), c(&cache, 50000); }
  CHECK(cache.scratch_bytes() > 0);
  CHECK(cache.scratch_bytes() <= (1 << 20) / 8);
  {
    // All there is, which the rounded size and the idle blocks would not leave.
    const Scratch all(&cache, 1 << 20);
    CHECK(all.as<char>() != nullptr);
    CHECK(cache.scratch_bytes() == 0);
  }
  Code code = Code::ok;
  try {
    const Scratch more(&cache, (1 << 20) + 1);
  } catch (const Error& error) {
    code = error.code();
  }
  CHECK(code == Code::resource_exhausted);
  InlinePool serial;
  const std::int64_t n = 200;
  const auto a = random_values<float>(n * n, 1), b = random_values<float>(n * n, 2);
  std::vector<float> c(a.size()), expected(a.size());
  gemm(serial, false, false, n, n, n, a.data(), b.data(), expected.data());
  gemm(serial, false, false, n, n, n, a.data(), b.data(), c.data(), {}, {.cache = &cache});
  CHECK(same_bits(c, expected));
}

TEST_CASE("what was used last among the primitives stays", "[routines][kernel_cache]") {
  PrimitiveCache cache(3);
  const auto number = [](int i) { return std::make_shared<const int>(i); };
  for (int i = 0; i < 3; ++i) CHECK(cache.insert(std::to_string(i), number(i)) == nullptr);
  REQUIRE(cache.find("0") != nullptr);
  CHECK(*static_cast<const int*>(cache.find("0")->get()) == 0);
  // The first of a key stays.
  CHECK(cache.insert("0", number(9)) == nullptr);
  CHECK(*static_cast<const int*>(cache.find("0")->get()) == 0);
  const auto gone = cache.insert("3", number(3));
  REQUIRE(gone != nullptr);
  CHECK(*static_cast<const int*>(gone.get()) == 1);
  CHECK(cache.size() == 3);
  CHECK(cache.find("1") == nullptr);
  CHECK(cache.find("2") != nullptr);
  CHECK(cache.take_all().size() == 3);
  CHECK(cache.size() == 0);
  CHECK(cache.find("0") == nullptr);
  cache.insert("0", number(1));
  CHECK(cache.size() == 1);
}

TEST_CASE("shapes that change from call to call do not grow the cache past its limit", "[routines][kernel_cache]") {
  if (!has_onednn()) return;
  KernelCache cache(default_cpu_allocator(), {.primitives = 2});
  InlinePool serial;
  const CpuOptions options{.backend = CpuBackend::onednn, .cache = &cache};
  for (std::int64_t batch : {1, 2, 3, 4, 1, 5}) {
    Conv2dShape s;
    s.batch = batch;
    s.in_rows = s.in_cols = 6;
    s.in_channels = s.out_channels = 16;
    s.filter_rows = s.filter_cols = 3;
    const auto x = random_values<float>(batch * 6 * 6 * 16, 1), w = random_values<float>(3 * 3 * 16 * 16, 2);
    std::vector<float> y(static_cast<std::size_t>(batch * s.out_rows() * s.out_cols() * 16)), expected(y);
    conv2d(serial, s, x.data(), w.data(), expected.data(), {}, {.backend = CpuBackend::builtin});
    conv2d(serial, s, x.data(), w.data(), y.data(), {}, options);
    for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(std::abs(y[i] - expected[i]) < 1e-4);
    CHECK(cache.primitives() <= 2);
  }
}

}  // namespace
}  // namespace dflow::cpu
