#include <dflow/base/threads/flag_lock.hpp>

#include "catch.hpp"

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using dflow::detail::FlagLock;

TEST_CASE("of threads that want a flag lock one has it at a time, and all get it", "[base]") {
  FlagLock lock;
  int counted = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        const std::lock_guard guard(lock);
        ++counted;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(counted == 20000);
}

TEST_CASE("a flag lock is tried without waiting", "[base]") {
  FlagLock lock;
  CHECK(lock.try_lock());
  CHECK(!lock.try_lock());
  std::thread waiting([&] {
    lock.lock();
    lock.unlock();
  });
  lock.unlock();
  waiting.join();
  CHECK(lock.try_lock());
  lock.unlock();
}

TEST_CASE("a thread may hold hundreds of flag locks", "[base]") {
  std::vector<std::unique_ptr<FlagLock>> locks;
  for (int i = 0; i < 300; ++i) locks.push_back(std::make_unique<FlagLock>());
  for (const auto& lock : locks) lock->lock();
  for (const auto& lock : locks) CHECK(!lock->try_lock());
  for (const auto& lock : locks) lock->unlock();
}
