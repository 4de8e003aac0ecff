#include "support/proof_allocator.hpp"

#include "catch.hpp"

#include <unistd.h>

#include <cstddef>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using dflow::testing::ProofAllocator;

/// Whether this thread may read the byte: the kernel says so instead of a signal.
bool can_read(const void* byte) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const bool could = ::write(ends[1], byte, 1) == 1;
  ::close(ends[0]);
  ::close(ends[1]);
  return could;
}

/// The same for a thread that was there before. A thread that starts while an Access lives inherits its right.
class OtherThread {
 public:
  ~OtherThread() { thread_.join(); }
  bool can_read(const void* byte) {
    asked_.set_value(byte);
    return answer_.get_future().get();
  }

 private:
  std::promise<const void*> asked_;
  std::promise<bool> answer_;
  std::thread thread_{[this] { answer_.set_value(::can_read(asked_.get_future().get())); }};
};

}  // namespace

TEST_CASE("a proof allocator's blocks are closed but while an Access lives, with a key or without",
          "[runtime][proof]") {
  std::vector<std::unique_ptr<ProofAllocator>> allocators;
  int without_key = 0;
  for (int i = 0; i < 20; ++i) {  // more than there are keys
    allocators.push_back(std::make_unique<ProofAllocator>(std::size_t{1} << 20));
    ProofAllocator& allocator = *allocators.back();
    INFO("allocator " << i << (allocator.has_key() ? ", with a key" : ", without a key"));
    without_key += allocator.has_key() ? 0 : 1;
    void* const block = allocator.allocate(100);
    for (int round = 0; round < 3; ++round) {
      CHECK_FALSE(can_read(block));
      OtherThread other;
      {
        const ProofAllocator::Access access(allocator);
        CHECK(can_read(block));
        { const ProofAllocator::Access inner(allocator); }
        CHECK(can_read(block));
        *static_cast<char*>(block) = 'a';
        void* const later = allocator.allocate(5000);
        CHECK(can_read(later));
        CHECK(other.can_read(block) == !allocator.has_key());
        allocator.deallocate(later, 5000);
      }
      CHECK_FALSE(can_read(block));
    }
    if (i > 0) {
      const ProofAllocator::Access access(*allocators.front());
      CHECK_FALSE(can_read(block));
    }
  }
  CHECK(without_key >= 5);
}

TEST_CASE("a key goes from a proof allocator that ends to the next one", "[runtime][proof]") {
  const bool has_keys = ProofAllocator(4096).has_key();
  for (int i = 0; i < 40; ++i) {
    ProofAllocator allocator(4096);
    CHECK(allocator.has_key() == has_keys);
    void* const block = allocator.allocate(1);
    CHECK_FALSE(can_read(block));
    const ProofAllocator::Access access(allocator);
    CHECK(can_read(block));
  }
}
