#pragma once

#include <dflow/base/threads/wait_word.hpp>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <climits>
#endif

namespace dflow {

#if defined(__linux__)

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free,
              "a futex is a word of 32 bits");

void wait_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  if (word.load() == value) ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake_one(const std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

#else

void wait_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept { word.wait(value); }

void wake_one(const std::atomic<std::uint32_t>& word) noexcept {
  const_cast<std::atomic<std::uint32_t>&>(word).notify_one();
}

void wake_all(const std::atomic<std::uint32_t>& word) noexcept {
  const_cast<std::atomic<std::uint32_t>&>(word).notify_all();
}

#endif

}  // namespace dflow
