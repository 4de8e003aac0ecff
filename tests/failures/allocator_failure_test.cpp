#include "small_training.hpp"

#include <dflow/core/memory/pool_allocator.hpp>

#include "catch.hpp"

#include <atomic>
#include <iostream>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// Refuses the n-th block that is asked for after `fail_at(n)`, and all others after it if told so.
class FailingAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    const std::int64_t left = left_.fetch_sub(1, std::memory_order_relaxed);
    if (left == 1 || (left < 1 && left > never / 2 - never && goes_on_failing_)) {
      num_failures_.fetch_add(1, std::memory_order_relaxed);
      throw Error(Status::resource_exhausted("this block is made to fail"));
    }
    return inner_.allocate(bytes, alignment);
  }
  void deallocate(void* block, std::size_t bytes) noexcept override { inner_.deallocate(block, bytes); }
  std::string_view name() const noexcept override { return "failing"; }
  AllocatorStats stats() const noexcept override { return inner_.stats(); }

  void fail_at(std::int64_t n, bool goes_on) {
    goes_on_failing_ = goes_on;
    left_.store(n, std::memory_order_relaxed);
  }
  void fail_never() { fail_at(never, false); }
  int num_failures() const { return num_failures_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t never = std::int64_t{1} << 60;

  CpuAllocator inner_;
  std::atomic<std::int64_t> left_{never};
  std::atomic<int> num_failures_{0};
  bool goes_on_failing_ = false;
};

struct How {
  const char* name;
  int threads;
  bool through_pool;  ///< the session's own caching allocator in between
  bool goes_on;       ///< every block from the n-th on fails, so that a second attempt within the step fails too
};

Code outcome_of(auto&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  return Code::ok;
}

SessionOptions options_for(const How& how, const std::shared_ptr<FailingAllocator>& failing) {
  SessionOptions options;
  options.num_threads = how.threads;
  options.allocator = failing;
  if (how.through_pool) {
    // The pool keeps its source of memory alive.
    options.allocator =
        std::shared_ptr<Allocator>(new PoolAllocator(*failing), [failing](Allocator* pool) { delete pool; });
  }
  return options;
}

}  // namespace

TEST_CASE("whichever block of memory fails, the step is ResourceExhausted and the session goes on", "[failures]") {
  const How how = GENERATE(How{"one thread", 1, false, false}, How{"one thread, a pool of blocks", 1, true, true},
                           How{"two threads", 2, false, true}, How{"two threads, a pool of blocks", 2, true, false});
  INFO(how.name);
  SmallTraining undisturbed;
  undisturbed.build();
  undisturbed.open({.num_threads = 1});
  const float expected = undisturbed.all_steps();

  int failures = 0;
  for (std::int64_t n = 1;; ++n) {
    INFO("block " << n << " fails");
    REQUIRE(n < 100'000);
    const auto failing = std::make_shared<FailingAllocator>();
    {
      SmallTraining training;
      training.build();
      training.open(options_for(how, failing));
      failing->fail_at(n, how.goes_on);
      float loss = 0;
      const Code code = outcome_of([&] { loss = training.all_steps(); });
      const bool has_failed = failing->num_failures() > 0;
      failing->fail_never();
      // The step goes on if it can do without the block: a cache gives its blocks back, and a node that cannot be
      // folded early runs in the step.
      if (code == Code::ok) {
        CHECK(loss == expected);
      } else {
        CHECK(has_failed);
        CHECK(code == Code::resource_exhausted);
      }
      CHECK(training.all_steps() == expected);
      if (!has_failed) break;
      ++failures;
    }
    CHECK(comes_true([&] { return failing->stats().bytes_in_use == 0; }));
  }
  CHECK(failures > 10);
  std::cout << "count: " << failures << " blocks of memory failed in turn, " << how.name << '\n';
}
