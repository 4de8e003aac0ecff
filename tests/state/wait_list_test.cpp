#include <dflow/state/wait_list.hpp>

#include "catch.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

using dflow::CancellationSource;
using dflow::CancellationToken;
using dflow::Status;
using dflow::detail::WaitList;

namespace {

struct Waiter {
  int number = 0;
};

/// An owner with a mutex that guards a list. It notes the waiters that were given up, and why.
struct Owner {
  std::mutex mutex;
  WaitList<Waiter> waiters;
  std::vector<std::pair<int, Status>> given_up;

  /// Would wait for ever if it were called with the lock.
  void give_up(const Waiter& waiter, const Status& why) {
    const std::lock_guard lock(mutex);
    given_up.emplace_back(waiter.number, why);
  }
};

/// Waits in the list, and returns its id.
std::uint64_t wait(const std::shared_ptr<Owner>& owner, int number, const CancellationToken& token) {
  std::unique_lock lock(owner->mutex);
  const std::uint64_t id = owner->waiters.add({number});
  dflow::detail::wait_for(owner, &Owner::waiters, lock, id, token);
  CHECK_FALSE(lock.owns_lock());
  return id;
}

std::vector<int> numbers(const std::vector<Waiter>& waiters) {
  std::vector<int> numbers;
  for (const Waiter& waiter : waiters) numbers.push_back(waiter.number);
  return numbers;
}

}  // namespace

TEST_CASE("Those who wait are taken in the order in which they came, each once") {
  WaitList<Waiter> list;
  CHECK(list.is_empty());
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(list.add({i}));
  CHECK(list.size() == 6);
  CHECK(list.front().number == 0);
  CHECK(list.take_front().number == 0);
  CHECK_FALSE(list.has(ids[0]));
  CHECK_FALSE(list.take(ids[0]).has_value());
  CHECK(list.take(ids[4])->number == 4);
  CHECK(numbers(list.take_if([](const Waiter& waiter) { return waiter.number % 2 == 1; })) == std::vector{1, 3, 5});
  CHECK(list.has(ids[2]));
  const std::uint64_t later = list.add({7});
  for (const std::uint64_t id : ids) CHECK(id != later);
  CHECK(numbers(list.take_all()) == std::vector{2, 7});
  CHECK(list.is_empty());
  CHECK(list.take_all().empty());
}

TEST_CASE("A token that is cancelled gives up its waiter alone, once and without the lock") {
  const auto owner = std::make_shared<Owner>();
  CancellationSource first, second;
  wait(owner, 1, first.token());
  wait(owner, 2, second.token());
  wait(owner, 3, CancellationToken());
  CHECK(owner->given_up.empty());
  second.cancel(dflow::Status::aborted("enough"));
  second.cancel(dflow::Status::aborted("once more"));
  REQUIRE(owner->given_up.size() == 1);
  CHECK(owner->given_up[0].first == 2);
  CHECK(owner->given_up[0].second.code() == dflow::Code::aborted);
  CHECK(owner->given_up[0].second.message() == "enough");
  CHECK(numbers(owner->waiters.take_all()) == std::vector{1, 3});
}

TEST_CASE("Who waits with a token that was cancelled before is given up at once") {
  const auto owner = std::make_shared<Owner>();
  CancellationSource source;
  source.cancel();
  wait(owner, 1, source.token());
  REQUIRE(owner->given_up.size() == 1);
  CHECK(owner->given_up[0].second.code() == dflow::Code::cancelled);
  CHECK(owner->waiters.is_empty());
  CHECK(owner.use_count() == 1);
}

TEST_CASE("Who was taken out hears no more of its token, which keeps nothing of it") {
  const auto owner = std::make_shared<Owner>();
  CancellationSource source;
  const std::uint64_t id = wait(owner, 1, source.token());
  CHECK(owner.use_count() == 2);  // the token's callback
  CHECK(owner->waiters.take(id)->number == 1);
  CHECK(owner.use_count() == 1);
  // Taken before it waits.
  std::unique_lock lock(owner->mutex);
  const std::uint64_t early = owner->waiters.add({2});
  CHECK(owner->waiters.take_front().number == 2);
  dflow::detail::wait_for(owner, &Owner::waiters, lock, early, source.token());
  CHECK_FALSE(lock.owns_lock());
  CHECK(owner.use_count() == 1);
  source.cancel();
  CHECK(owner->given_up.empty());
}

TEST_CASE("An owner that is let go lives until its waiter has been given up") {
  struct Told {
    std::mutex mutex;
    WaitList<Waiter> waiters;
    std::shared_ptr<int> told;
    void give_up(const Waiter& waiter, const Status&) const { *told = waiter.number; }
  };
  const auto told = std::make_shared<int>(0);
  CancellationSource source;
  auto owner = std::make_shared<Told>();
  owner->told = told;
  std::unique_lock lock(owner->mutex);
  const std::uint64_t id = owner->waiters.add({5});
  dflow::detail::wait_for(owner, &Told::waiters, lock, id, source.token());
  const std::weak_ptr<Told> left = owner;
  owner.reset();
  REQUIRE_FALSE(left.expired());
  source.cancel();
  CHECK(*told == 5);
  CHECK(left.expired());
}

TEST_CASE("Waiting that is ended is so for those who wait, and for those who come later") {
  const auto owner = std::make_shared<Owner>();
  CancellationSource source;
  wait(owner, 1, source.token());
  wait(owner, 2, CancellationToken());
  CHECK(owner->waiters.ended().ok());
  dflow::detail::end_waiting(owner, &Owner::waiters, dflow::Status::aborted("closed"));
  dflow::detail::end_waiting(owner, &Owner::waiters, dflow::Status::internal("closed again"));
  CHECK(owner->waiters.ended().code() == dflow::Code::aborted);
  wait(owner, 3, source.token());
  CHECK(owner->waiters.is_empty());
  CHECK(owner.use_count() == 1);
  source.cancel();
  std::vector<int> told;
  for (const auto& [number, why] : owner->given_up) {
    CHECK(why.message() == "closed");
    told.push_back(number);
  }
  CHECK(told == std::vector{1, 2, 3});
}

TEST_CASE("Each waiter ends once while threads come, take, cancel and end all waiting", "[stress]") {
  constexpr int per_thread = 40, num_waiters = 2 * per_thread;
  struct Counting {
    std::mutex mutex;
    WaitList<Waiter> waiters;
    std::vector<std::atomic<int>> ends = std::vector<std::atomic<int>>(num_waiters);
    std::atomic<int> num_ended{0};
    void end(const Waiter& waiter) {
      ++ends[static_cast<std::size_t>(waiter.number)];
      ++num_ended;
    }
    void give_up(const Waiter& waiter, const Status&) { end(waiter); }
  };
  for (int round = 0; round < 200; ++round) {
    const bool ends_waiting = round % 2 == 1;
    const auto owner = std::make_shared<Counting>();
    std::vector<CancellationSource> sources(num_waiters);
    std::atomic<int> num_come{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (int i = t * per_thread; i < (t + 1) * per_thread; ++i) {
          std::unique_lock lock(owner->mutex);
          const std::uint64_t id = owner->waiters.add({i});
          dflow::detail::wait_for(owner, &Counting::waiters, lock, id, sources[static_cast<std::size_t>(i)].token());
          ++num_come;
        }
      });
    }
    threads.emplace_back([&] {  // of both threads by turns, some before they wait
      for (std::size_t i = 0; i < per_thread; i += 2) {
        sources[i].cancel();
        sources[per_thread + i].cancel();
      }
    });
    threads.emplace_back([&] {
      while (owner->num_ended < num_waiters) {
        std::optional<Waiter> taken;
        {
          const std::lock_guard lock(owner->mutex);
          if (!owner->waiters.is_empty()) taken = owner->waiters.take_front();
        }
        if (taken) owner->end(*taken);
        if (!taken) std::this_thread::yield();
      }
    });
    if (ends_waiting) {
      while (num_come < num_waiters / 2) std::this_thread::yield();
      dflow::detail::end_waiting(owner, &Counting::waiters, dflow::Status::aborted("closed"));
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(owner->waiters.is_empty());
    for (const std::atomic<int>& ends : owner->ends) REQUIRE(ends == 1);
    REQUIRE(owner.use_count() == 1);  // no token keeps it
  }
}
