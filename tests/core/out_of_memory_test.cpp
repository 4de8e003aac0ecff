// Every allocation of the floor's operations fails in turn: of operator new, and of the allocator.
#include <dflow/core/any_tensor.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/core/memory/huge_page_allocator.hpp>
#include <dflow/core/memory/pool_allocator.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/core/tensor.hpp>

#include "catch.hpp"
#include "support/failing_new.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace dflow;
using failing_new::fail_each;

namespace {

/// Gives out memory of the process's heap, but for one call.
class FailingAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    if (fails_in > 0 && --fails_in == 0) throw_error(Status::resource_exhausted("made to fail"));
    return cpu_.allocate(bytes, alignment);
  }
  void deallocate(void* block, std::size_t bytes) noexcept override { cpu_.deallocate(block, bytes); }
  std::string_view name() const noexcept override { return "failing"; }
  AllocatorStats stats() const noexcept override { return cpu_.stats(); }

  int fails_in = 0;

 private:
  CpuAllocator cpu_;
};

/// Runs `operation` with each allocation of `heap` failing in turn, and returns how many there are.
template <class Operation>
int fail_each_block(FailingAllocator& heap, const Operation& operation) {
  operation();
  for (int n = 1;; ++n) {
    bool is_refused = false;
    heap.fails_in = n;
    try {
      operation();
    } catch (const Error& error) {
      is_refused = true;
      CHECK(error.code() == Code::resource_exhausted);
    }
    const bool has_failed = heap.fails_in == 0;
    heap.fails_in = 0;
    CHECK(heap.stats().bytes_in_use == 0);
    if (!has_failed) {
      REQUIRE_FALSE(is_refused);
      return n - 1;
    }
  }
}

/// Makes tensors of all kinds.
void use_tensors(Allocator& allocator) {
  AnyTensor small(DType::float32, {3, 4}, allocator);
  AnyTensor large(DType::float64, {64, 1024}, allocator);
  AnyTensor strings(DType::string, {50}, allocator);
  strings.span<std::string>()[7] = std::string(100, 'x');
  const AnyTensor zeros = AnyTensor::zeros(DType::int32, {2, 2}, allocator);
  const AnyTensor copy = strings.deep_copy(allocator);
  const AnyTensor other = large.deep_copy(allocator);
  if (!bitwise_equal(strings, copy)) throw std::logic_error("another content");
  static_cast<void>(zeros.to_string() + copy.slice(5, 9).to_string() + PartialShape({dynamic, 2}).to_string());
}

}  // namespace

TEST_CASE("tensors are made whole or not at all when memory runs out", "[out_of_memory]") {
  FailingAllocator heap;
  CHECK(fail_each([&] { use_tensors(heap); }) > 4);
  CHECK(heap.stats().bytes_in_use == 0);
  CHECK(fail_each_block(heap, [&] { use_tensors(heap); }) >= 6);
}

TEST_CASE("allocators in a row give back what they have when one of them fails", "[out_of_memory]") {
  FailingAllocator heap;
  const auto use_all = [&] {
    auto huge = std::make_shared<HugePageAllocator>(heap);
    auto pool = std::make_shared<PoolAllocator>(huge, PoolAllocatorOptions{.max_cached_bytes = std::size_t{1} << 20});
    LimitAllocator limit(std::move(pool), std::size_t{1} << 30);
    use_tensors(limit);
    use_tensors(limit);
    const AnyTensor outlives(DType::uint8, {3 << 20}, limit);
    const AnyTensor cut(DType::uint8, {300'000}, *huge);
  };
  CHECK(fail_each(use_all) > 10);
  CHECK(heap.stats().bytes_in_use == 0);
  // The pool asks twice, so that it is never refused by one failure.
  CHECK(fail_each_block(heap, use_all) > 5);
}

TEST_CASE("memory that could not be adopted stays the caller's", "[out_of_memory]") {
  std::vector<float> values(100);
  int made = 0;
  int released = 0;
  CHECK(fail_each([&] {
          const Tensor<float> t = adopt(std::span(values), {100}, [&] { ++released; });
          ++made;
          const Tensor<float> view = borrow(values, {10, 10});
        }) >= 2);
  CHECK(released == made);
}

TEST_CASE("cancelling needs no memory, and registering leaves nothing behind without", "[out_of_memory]") {
  CHECK(fail_each([] {
          CancellationSource parent;
          CancellationSource child(parent.token());
          std::vector<CancellationRegistration> registrations(20);
          int called = 0;
          int registered = 0;
          for (CancellationRegistration& registration : registrations) {
            registration = child.token().on_cancel([&](const Status&) { ++called; });
            ++registered;
          }
          registrations[3].deregister();
          if (!parent.cancel()) throw std::logic_error("not cancelled");
          if (called != registered - 1 || child.token().status().ok()) throw std::logic_error("callbacks");
        }) > 5);
}
