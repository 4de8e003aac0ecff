#pragma once

#include <dflow/base/threads/pool_event.hpp>
#include <dflow/base/threads/spin_lock.hpp>
#include <dflow/base/threads/wait_word.hpp>

#include <cassert>
#include <thread>

namespace dflow {

void PoolEvent::set() noexcept {
  // A waiter stays until it is told; without one, this may be gone after the exchange.
  Waiter* const mark = happened();
  Waiter* waiter = waiter_.exchange(mark);
  if (waiter == nullptr || waiter == mark) return;
  std::atomic<std::uint32_t>& word = waiter->word_;
  word.store(0);
  waiter->is_told_.store(true, std::memory_order_release);
  wake_one(word);  // only its address is used
}

bool PoolEvent::Waiter::enlist(PoolEvent& event) noexcept {
  Waiter* other = nullptr;
  if (event.waiter_.compare_exchange_strong(other, this)) return true;
  assert(other == event.happened() && "one thread waits for an event at a time");
  return false;
}

void PoolEvent::Waiter::withdraw(PoolEvent& event) noexcept {
  Waiter* self = this;
  if (event.waiter_.compare_exchange_strong(self, nullptr)) return;
  for (int spins = 0; !is_told_.load(std::memory_order_acquire); ++spins) {
    spins < 100 ? detail::relax_cpu() : std::this_thread::yield();
  }
}

void PoolEvent::wait_blocking() noexcept {
  if (is_set()) return;
  std::atomic<std::uint32_t> word{1};
  Waiter waiter(word);
  if (!waiter.enlist(*this)) return;
  while (word.load() == 1) wait_while_equal(word, 1);
  waiter.withdraw(*this);
}

}  // namespace dflow
