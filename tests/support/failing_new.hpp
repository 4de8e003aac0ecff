// Replaces operator new in the program that includes this, in one unit of it, so that allocations can be made to fail.
#pragma once

#include <dflow/base/status.hpp>

#include "catch.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace failing_new {

/// Allocations that are not freed yet, of all threads.
inline std::atomic<long> num_live{0};
/// Allocations of the calling thread, less those that it has freed. For an operation in one thread, whatever threads of
/// other tests still free.
inline thread_local long num_live_here = 0;
/// Bytes that the calling thread has asked for so far.
inline thread_local std::size_t num_bytes = 0;
/// The calling thread's allocation that fails, counted down to 1; 0 for none.
inline thread_local int fails_in = 0;

inline void* allocate(std::size_t bytes, std::size_t alignment) {
  if (fails_in > 0 && --fails_in == 0) throw std::bad_alloc();
  void* block = nullptr;
  if (::posix_memalign(&block, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes) != 0)
    throw std::bad_alloc();
  ++num_live;
  ++num_live_here;
  num_bytes += bytes;
  return block;
}

inline void deallocate(void* block) noexcept {
  if (block == nullptr) return;
  --num_live;
  --num_live_here;
  std::free(block);
}

/// Runs `operation` with each of this thread's allocations failing in turn, and returns how many there are. It may
/// throw bad_alloc or Error, or do without; it must not leave memory behind nor end the process.
template <class Operation>
int fail_each(const Operation& operation) {
  operation();
  for (int n = 1;; ++n) {
    const long live = num_live;
    bool is_refused = false;
    fails_in = n;
    try {
      operation();
    } catch (const std::bad_alloc&) {
      is_refused = true;
    } catch (const dflow::Error&) {
      is_refused = true;
    }
    const bool has_failed = fails_in == 0;
    fails_in = 0;
    if (num_live != live) FAIL("allocation " << n << " failed: " << num_live - live << " blocks were not freed");
    if (!has_failed) {
      REQUIRE_FALSE(is_refused);
      return n - 1;
    }
  }
}

}  // namespace failing_new

void* operator new(std::size_t bytes) { return failing_new::allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return failing_new::allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return operator new(bytes, alignment); }
// A sanitizer has its own nothrow operators. Our operators must not free their blocks.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (...) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, const std::nothrow_t& tag) noexcept { return operator new(bytes, tag); }
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes, alignment);
  } catch (...) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t& tag) noexcept {
  return operator new(bytes, alignment, tag);
}
void operator delete(void* block, const std::nothrow_t&) noexcept { failing_new::deallocate(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { failing_new::deallocate(block); }
void operator delete(void* block) noexcept { failing_new::deallocate(block); }
void operator delete(void* block, std::size_t) noexcept { failing_new::deallocate(block); }
void operator delete(void* block, std::align_val_t) noexcept { failing_new::deallocate(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { failing_new::deallocate(block); }
void operator delete[](void* block) noexcept { failing_new::deallocate(block); }
void operator delete[](void* block, std::size_t) noexcept { failing_new::deallocate(block); }
void operator delete[](void* block, std::align_val_t) noexcept { failing_new::deallocate(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { failing_new::deallocate(block); }
