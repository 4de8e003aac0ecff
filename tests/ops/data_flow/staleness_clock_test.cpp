#include <dflow/ops/data_flow/staleness_clock.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/state/staleness_clock_state.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

using GoneRanks = std::vector<std::int32_t>;

/// The outcome of a call to a clock, once the clock has told it.
struct ClockTold {
  bool is_told = false;
  Status status;
  std::int64_t step = -100;
  GoneRanks gone;
};

std::shared_ptr<ClockTold> await_step(StalenessClockState& clock, std::int64_t member,
                                      const CancellationToken& token = {}) {
  auto told = std::make_shared<ClockTold>();
  clock.wait_async(member, token, [told](Status status, std::int64_t step) {
    REQUIRE_FALSE(told->is_told);
    *told = {true, std::move(status), step, {}};
  });
  return told;
}

std::shared_ptr<ClockTold> watch_clock(StalenessClockState& clock, GoneRanks known,
                                       const CancellationToken& token = {}) {
  auto told = std::make_shared<ClockTold>();
  clock.watch_async(std::move(known), token, [told](Status status, GoneRanks gone) {
    REQUIRE_FALSE(told->is_told);
    *told = {true, std::move(status), 0, std::move(gone)};
  });
  return told;
}

std::shared_ptr<ClockTold> leave_clock(StalenessClockState& clock, std::int64_t rank,
                                       const CancellationToken& token = {}) {
  auto told = std::make_shared<ClockTold>();
  clock.leave_async(rank, token, [told](Status status) {
    REQUIRE_FALSE(told->is_told);
    *told = {true, std::move(status), 0, {}};
  });
  return told;
}

std::shared_ptr<ClockTold> lead_clock(StalenessClockState& clock, std::int64_t rank,
                                      const CancellationToken& token = {}) {
  auto told = std::make_shared<ClockTold>();
  clock.lead_async(rank, token, [told](Status status) {
    REQUIRE_FALSE(told->is_told);
    *told = {true, std::move(status), 0, {}};
  });
  return told;
}

/// Joins, or waits for a leader.
std::shared_ptr<ClockTold> begin_at_clock(StalenessClockState& clock, std::int64_t rank, bool only_awaits,
                                          const CancellationToken& token = {}) {
  auto told = std::make_shared<ClockTold>();
  const auto done = [told](Status status, std::int64_t member) {
    REQUIRE_FALSE(told->is_told);
    *told = {true, std::move(status), member, {}};
  };
  only_awaits ? clock.await_leader_async(rank, token, done) : clock.join_async(rank, token, done);
  return told;
}

std::shared_ptr<ClockTold> end_at_clock(StalenessClockState& clock, std::int64_t rank,
                                        const CancellationToken& token = {}) {
  auto told = std::make_shared<ClockTold>();
  clock.end_async(rank, token, [told](Status status) {
    REQUIRE_FALSE(told->is_told);
    *told = {true, std::move(status), 0, {}};
  });
  return told;
}

}  // namespace

TEST_CASE("A step begins when the slowest has finished the one that is staleness + 1 before it") {
  for (const std::int64_t staleness : {0, 1, 3}) {
    StalenessClockState clock("c", 2, staleness);
    const std::int64_t fast = clock.join(0), slow = clock.join(1);
    for (std::int64_t step = 0; step <= staleness; ++step) {
      const auto begins = await_step(clock, fast);
      CHECK(begins->step == step);
      clock.tick(fast);
    }
    for (std::int64_t slow_step = 0; slow_step < 3; ++slow_step) {
      CAPTURE(staleness, slow_step);
      const auto begins = await_step(clock, fast);
      CHECK_FALSE(begins->is_told);
      CHECK(await_step(clock, slow)->step == slow_step);
      clock.tick(slow);
      CHECK(begins->is_told);
      CHECK(begins->status.ok());
      CHECK(begins->step == staleness + 1 + slow_step);
      clock.tick(fast);
    }
  }
}

TEST_CASE("Without bound nobody waits") {
  StalenessClockState clock("c", 2, std::numeric_limits<std::int64_t>::max());
  const std::int64_t fast = clock.join(0);
  clock.join(1);
  for (int step = 0; step < 100; ++step) clock.tick(fast);
  CHECK(await_step(clock, fast)->step == 100);
}

TEST_CASE("Who joins late or again begins where the slowest is, and who leaves holds back nobody") {
  StalenessClockState clock("c", 3, 1);
  const std::int64_t a = clock.join(0), b = clock.join(1);
  for (int step = 0; step < 5; ++step) {
    clock.tick(a);
    clock.tick(b);
  }
  clock.tick(a);
  const std::int64_t late = clock.join(2);
  CHECK(await_step(clock, late)->step == 5);
  const auto a_begins = await_step(clock, a);
  CHECK(a_begins->step == 6);
  clock.tick(a);
  const auto a_waits = await_step(clock, a);
  CHECK_FALSE(a_waits->is_told);
  clock.tick(b);
  CHECK_FALSE(a_waits->is_told);
  CHECK(leave_clock(clock, 2)->is_told);  // nobody watches, so nobody needs to know
  CHECK(a_waits->step == 7);
  // A restarted process takes its place, and the old process has none.
  const std::int64_t again = clock.join(1);
  CHECK(await_step(clock, again)->step == 6);
  CHECK(await_step(clock, b)->status.code() == Code::aborted);
  CHECK(code_of([&] { clock.tick(b); }) == Code::aborted);
  CHECK(await_step(clock, late)->status.code() == Code::aborted);
  CHECK(clock.num_present() == 2);
}

TEST_CASE("Who waits is told that another process has its rank") {
  StalenessClockState clock("c", 2, 0);
  const std::int64_t old = clock.join(0);
  clock.join(1);
  clock.tick(old);
  const auto waits = await_step(clock, old);
  CHECK_FALSE(waits->is_told);
  clock.join(0);
  CHECK(waits->status.code() == Code::aborted);
}

TEST_CASE("Who leaves is told that another process has its rank") {
  StalenessClockState clock("c", 3, 0);
  for (std::int64_t rank = 0; rank < 3; ++rank) clock.join(rank);
  static_cast<void>(lead_clock(clock, 0));
  const auto watches = watch_clock(clock, {});
  const auto leaves = leave_clock(clock, 1), other = leave_clock(clock, 2);
  CHECK(watches->gone == GoneRanks{1});
  CHECK_FALSE(leaves->is_told);
  const std::int64_t again = clock.join(1);
  REQUIRE(leaves->is_told);
  CHECK(leaves->status.code() == Code::already_exists);
  CHECK(mentions(leaves->status, "another one has joined as replica 1"));
  CHECK_FALSE(other->is_told);
  CHECK(await_step(clock, again)->status.ok());
  CHECK(watch_clock(clock, {1})->gone == GoneRanks{2});
}

TEST_CASE("Waiting ends when its token is cancelled") {
  StalenessClockState clock("c", 2, 0);
  const std::int64_t fast = clock.join(0);
  clock.join(1);
  clock.tick(fast);
  static_cast<void>(lead_clock(clock, 0));
  CancellationSource source;
  const auto waits = await_step(clock, fast, source.token());
  const auto watches = watch_clock(clock, {}, source.token());
  source.cancel();
  CHECK(waits->status.code() == Code::cancelled);
  CHECK(watches->status.code() == Code::cancelled);
  CancellationSource leaves;
  const auto leaver = leave_clock(clock, 1, leaves.token());
  CHECK_FALSE(leaver->is_told);
  leaves.cancel();
  CHECK(leaver->status.code() == Code::cancelled);
  CHECK(clock.num_present() == 1);  // it has left nevertheless
}

TEST_CASE("Who leaves is told so when who watches knows, also by a clock that was started anew") {
  auto clock = std::make_unique<StalenessClockState>("c", 3, 0);
  for (std::int64_t rank = 0; rank < 3; ++rank) clock->join(rank);
  static_cast<void>(lead_clock(*clock, 0));
  auto watches = watch_clock(*clock, {});
  auto leaves = leave_clock(*clock, 1);
  CHECK(watches->gone == GoneRanks{1});
  CHECK_FALSE(leaves->is_told);  // the answer may be lost
  watches = watch_clock(*clock, {1});
  CHECK(leaves->status.ok());
  CHECK(leaves->is_told);
  CHECK(leave_clock(*clock, 1)->is_told);  // once more: that is known

  clock = std::make_unique<StalenessClockState>("c", 3, 0);
  static_cast<void>(lead_clock(*clock, 0));
  watches = watch_clock(*clock, {1});
  CHECK_FALSE(watches->is_told);
  clock->join(0);
  clock->join(2);
  leaves = leave_clock(*clock, 0);
  CHECK(watches->gone == GoneRanks{0, 1});
  watches = watch_clock(*clock, {0, 1});
  leaves = leave_clock(*clock, 2);
  CHECK(watches->gone == GoneRanks{0, 1, 2});
  CHECK_FALSE(leaves->is_told);
  CHECK(watch_clock(*clock, {0, 1, 2})->gone == GoneRanks{0, 1, 2});
  CHECK(leaves->is_told);
  CHECK(leave_clock(*clock, 2)->is_told);
  CHECK(watch_clock(*clock, {0, 1, 2})->is_told);  // the last answer was lost

  // The replicas train once more.
  watches = watch_clock(*clock, {});
  CHECK_FALSE(watches->is_told);
  clock->join(2);
  static_cast<void>(leave_clock(*clock, 2));
  CHECK(watches->gone == GoneRanks{2});
}

TEST_CASE("Who comes back is known to be there") {
  StalenessClockState clock("c", 2, 0);
  clock.join(0);
  clock.join(1);
  static_cast<void>(lead_clock(clock, 0));
  static_cast<void>(watch_clock(clock, {}));
  static_cast<void>(leave_clock(clock, 1));
  const auto watches = watch_clock(clock, {1});
  clock.join(1);
  CHECK(watches->is_told);
  CHECK(watches->gone.empty());
  const auto leaves = leave_clock(clock, 1);
  CHECK_FALSE(leaves->is_told);
  static_cast<void>(watch_clock(clock, {1}));
  CHECK(leaves->is_told);
}

TEST_CASE("The slowest are given up when others have waited for them and nobody has gone on") {
  StalenessClockState clock("c", 4, 0);
  const std::int64_t a = clock.join(0), b = clock.join(1), c = clock.join(2);
  CHECK(clock.drop_late(-1, false) == -1);  // nobody waits
  clock.tick(a);
  const auto a_waits = await_step(clock, a);
  std::int64_t since = clock.drop_late(-1, false);
  CHECK(since >= 0);
  clock.tick(b);
  since = clock.drop_late(since, false);  // somebody has gone on
  CHECK(since >= 0);
  CHECK_FALSE(a_waits->is_told);
  CHECK(clock.num_present() == 3);
  CHECK(clock.drop_late(since, false) == -1);
  CHECK(a_waits->step == 1);
  CHECK(clock.num_present() == 2);
  CHECK(code_of([&] { clock.tick(c); }) == Code::aborted);
  // The process is back, at the step of the slowest one.
  CHECK(await_step(clock, clock.join(2))->step == 1);
  // When all other processes are gone, a process that has never come is no longer waited for.
  for (std::int64_t rank = 0; rank < 3; ++rank) static_cast<void>(leave_clock(clock, rank));
  const auto watches = watch_clock(clock, {0, 1, 2});
  CHECK_FALSE(watches->is_told);
  since = clock.drop_late(-1, false);
  CHECK(since >= 0);
  static_cast<void>(clock.drop_late(since, false));
  CHECK(watches->gone == GoneRanks{0, 1, 2, 3});
}

TEST_CASE("Who has left waits for the rest no longer than for the slowest, and who was given up leaves at once") {
  StalenessClockState clock("c", 3, 40);
  const std::int64_t a = clock.join(0);
  for (std::int64_t rank = 1; rank < 3; ++rank) clock.join(rank);
  clock.tick(a);
  CHECK(clock.drop_late(-1, false) == -1);  // nobody waits
  static_cast<void>(leave_clock(clock, 0));
  const auto watches = watch_clock(clock, {0});
  CHECK_FALSE(watches->is_told);
  std::int64_t since = clock.drop_late(-1, false);
  CHECK(since >= 0);
  static_cast<void>(clock.drop_late(since, false));  // the two others have died
  CHECK(watches->gone == GoneRanks{0, 1, 2});
  static_cast<void>(watch_clock(clock, {0, 1, 2}));
  for (int call = 0; call < 2; ++call) CHECK(leave_clock(clock, 1)->is_told);
}

TEST_CASE("replicas leave without a leader as soon as it has lost its place, also between two calls that watch") {
  StalenessClockState clock("c", 3, 0);
  for (std::int64_t rank = 0; rank < 3; ++rank) clock.join(rank);
  CancellationSource late, place;
  const auto leads = lead_clock(clock, 0, place.token());
  static_cast<void>(watch_clock(clock, {}, late.token()));
  late.cancel(Status::deadline_exceeded("its time is over"));
  const auto first = leave_clock(clock, 1);
  CHECK_FALSE(first->is_told);  // the leader watches again
  CHECK(watch_clock(clock, {})->gone == GoneRanks{1});
  const auto watches = watch_clock(clock, {1});
  CHECK(first->is_told);
  const auto second = leave_clock(clock, 2);
  CHECK(watches->gone == GoneRanks{1, 2});
  CHECK_FALSE(second->is_told);
  place.cancel(Status::unavailable("its process is lost"));
  CHECK(leads->status.code() == Code::unavailable);
  CHECK(second->status.ok());
  CHECK(second->is_told);
  CHECK(leave_clock(clock, 1)->status.ok());

  const auto next = lead_clock(clock, 0);
  CHECK(watch_clock(clock, {1})->gone == GoneRanks{1, 2});
  static_cast<void>(leave_clock(clock, 0));
  CHECK(watch_clock(clock, {0, 1, 2})->gone == GoneRanks{0, 1, 2});  // it has ended
  clock.join(1);
  CHECK_FALSE(next->is_told);
  CHECK(lead_clock(clock, 1)->is_told == false);
  CHECK(next->status.code() == Code::already_exists);
}

TEST_CASE("replicas that wait for others are told that the leader is lost, and begin again when somebody leads") {
  StalenessClockState clock("c", 3, 0);
  const std::int64_t a = clock.join(1);
  clock.join(0);
  CancellationSource place;
  static_cast<void>(lead_clock(clock, 0, place.token()));
  clock.tick(a);
  const auto waits = await_step(clock, a), watches = watch_clock(clock, {});
  CHECK_FALSE(waits->is_told);
  place.cancel();
  REQUIRE(waits->is_told);
  CHECK(waits->status.code() == Code::aborted);
  CHECK(mentions(waits->status, "the leader, replica 0, is lost"));
  CHECK(watches->status.code() == Code::aborted);
  CHECK(await_step(clock, a)->status.code() == Code::aborted);
  CancellationSource stopped;
  const auto joins = begin_at_clock(clock, 1, false), other = begin_at_clock(clock, 2, false, stopped.token());
  CHECK_FALSE(joins->is_told);
  stopped.cancel();
  CHECK(other->status.code() == Code::cancelled);
  static_cast<void>(lead_clock(clock, 0));
  REQUIRE(joins->is_told);
  CHECK(await_step(clock, joins->step)->status.ok());
  CHECK(begin_at_clock(clock, 2, false)->status.ok());
}

TEST_CASE("replicas go on when the leader has left before it loses its place, or leaves after it") {
  StalenessClockState clock("c", 2, 0);
  const std::int64_t a = clock.join(1), chief = clock.join(0);
  for (const bool leaves_first : {true, false}) {
    CancellationSource place;
    static_cast<void>(lead_clock(clock, 0, place.token()));
    if (leaves_first) static_cast<void>(leave_clock(clock, 0));
    place.cancel();
    const auto joins = begin_at_clock(clock, 1, false);
    CHECK(joins->is_told == leaves_first);
    CHECK(leave_clock(clock, 0)->status.ok());
    CHECK(joins->status.ok());
    CHECK(joins->step > a);
    CHECK(await_step(clock, joins->step)->status.ok());
    CHECK(await_step(clock, chief)->status.code() == Code::aborted);
    clock.join(0);
  }
}

TEST_CASE("a chief that has not led tells the end to replicas that wait for a leader, and nobody else") {
  StalenessClockState clock("c", 4, 0);
  const auto first = begin_at_clock(clock, 1, true);
  CHECK_FALSE(first->is_told);
  const auto ends = end_at_clock(clock, 0);
  REQUIRE(first->is_told);
  CHECK(first->status.code() == Code::out_of_range);
  CHECK(mentions(first->status, "the chief, replica 0, was told to stop before it led"));
  CHECK(begin_at_clock(clock, 2, true)->status.code() == Code::out_of_range);
  CHECK_FALSE(ends->is_told);
  CHECK(leave_clock(clock, 3)->status.ok());
  CHECK(ends->status.ok());
  CHECK(ends->is_told);

  // The next training begins anew, and a call whose time is over ends no longer.
  CancellationSource late;
  const auto again = end_at_clock(clock, 0, late.token());
  late.cancel(Status::deadline_exceeded("its time is over"));
  CHECK(again->status.code() == Code::deadline_exceeded);
  const auto waits = begin_at_clock(clock, 1, true);
  CHECK_FALSE(waits->is_told);
  const auto third = end_at_clock(clock, 0);
  CHECK(waits->status.code() == Code::out_of_range);
  CHECK_FALSE(third->is_told);
  static_cast<void>(lead_clock(clock, 0));
  CHECK(third->status.ok());
  CHECK(third->is_told);
  CHECK(begin_at_clock(clock, 2, true)->status.ok());
  const auto leaves = end_at_clock(clock, 0);  // somebody leads
  CHECK_FALSE(leaves->is_told);
  static_cast<void>(watch_clock(clock, {0, 1}));
  CHECK(leaves->status.ok());
  CHECK(leaves->is_told);
}

TEST_CASE("the slowest are only named, and nobody is told, if the watcher asks for that") {
  StalenessClockState clock("c", 2, 0);
  const std::int64_t a = clock.join(0);
  clock.join(1);
  clock.tick(a);
  const auto a_waits = await_step(clock, a);
  const std::int64_t since = clock.drop_late(-1, false, true);
  CHECK(since >= 0);
  CHECK_THROWS_WITH(clock.drop_late(since, false, true),
                    Catch::Contains("replicas 1 have not finished step 0 in time"));
  CHECK_FALSE(a_waits->is_told);
  CHECK(clock.num_present() == 2);
}

TEST_CASE("The slowest are named to those who wait, if nobody is to be given up") {
  StalenessClockState clock("c", 3, 0);
  const std::int64_t a = clock.join(0);
  clock.join(1);
  clock.join(2);
  clock.tick(a);
  const auto waits = await_step(clock, a);
  const std::int64_t since = clock.drop_late(-1, true);
  CHECK_THROWS_WITH(clock.drop_late(since, true), Catch::Contains("replicas 1, 2 have not finished step 0 in time"));
  CHECK(waits->status.code() == Code::deadline_exceeded);
  CHECK(await_step(clock, a)->status.code() == Code::deadline_exceeded);
  clock.join(1);
  CHECK_FALSE(await_step(clock, a)->is_told);
}

TEST_CASE("A clock refuses ranks that are none, and options that make no sense") {
  CHECK(code_of([] { StalenessClockState("c", 0, 0); }) == Code::invalid_argument);
  CHECK(code_of([] { StalenessClockState("c", 1, -1); }) == Code::invalid_argument);
  StalenessClockState clock("c", 2, 1);
  CHECK(code_of([&] { clock.join(2); }) == Code::invalid_argument);
  CHECK(code_of([&] { clock.join(-1); }) == Code::invalid_argument);
  CHECK(code_of([&] { static_cast<void>(leave_clock(clock, 5)); }) == Code::invalid_argument);
  CHECK(code_of([&] { static_cast<void>(watch_clock(clock, {7})); }) == Code::invalid_argument);
  CHECK(await_step(clock, 9)->status.code() == Code::aborted);
  Graph graph;
  CHECK(code_of([&] { build<StalenessClock>(*graph.store(), {}, {.replicas = 0}); }) == Code::invalid_argument);
  CHECK(code_of([&] { build<StalenessClock>(*graph.store(), {}, {.staleness = -1}); }) == Code::invalid_argument);
}

TEST_CASE("Threads that wait, are cancelled, tick and leave are each told once, and none gets past the bound") {
  constexpr int num_replicas = 3, num_steps = 200;
  constexpr std::int64_t staleness = 1;
  StalenessClockState clock("c", num_replicas, staleness);
  const auto wait = [&](std::int64_t member, const CancellationToken& token) {
    std::promise<std::pair<Status, std::int64_t>> told;
    clock.wait_async(member, token, [&](Status status, std::int64_t step) {
      told.set_value({std::move(status), step});
    });
    return told.get_future().get();
  };
  std::vector<std::int64_t> members;
  for (std::int64_t rank = 0; rank < num_replicas; ++rank) members.push_back(clock.join(rank));
  std::atomic<int> num_too_early{0};
  std::vector<std::jthread> threads;
  threads.reserve(num_replicas + 1);
  static_cast<void>(lead_clock(clock, 0));
  threads.emplace_back([&] {
    for (GoneRanks known, before{-1}; known != before;) {
      std::promise<GoneRanks> told;
      clock.watch_async(known, {}, [&](const Status&, GoneRanks gone) { told.set_value(std::move(gone)); });
      before = std::exchange(known, told.get_future().get());
    }
  });
  for (std::int64_t rank = 0; rank < num_replicas; ++rank) {
    threads.emplace_back([&, rank, member = members[static_cast<std::size_t>(rank)]] {
      for (int i = 0; i < num_steps; ++i) {
        CancellationSource source;
        std::jthread canceller([source]() mutable { source.cancel(); });
        auto [status, step] = wait(member, source.token());
        if (!status.ok()) step = wait(member, {}).second;
        num_too_early += step != i || step - clock.least_clock() > staleness;
        clock.tick(member);
      }
      std::promise<void> told;
      clock.leave_async(rank, {}, [&](const Status&) { told.set_value(); });
      told.get_future().get();
    });
  }
  threads.clear();
  CHECK(num_too_early == 0);
  CHECK(clock.num_present() == 0);
}

TEST_CASE("The ops of a clock are its functions, and two sessions meet at it") {
  const auto device = std::make_shared<CpuDevice>(
      CpuDeviceOptions{.pool = std::make_shared<WorkStealingPool>(1, ThreadPoolOptions{.name = "clock"})});
  struct AtClock {
    Graph graph;
    AnyOutput clock, member, step;
    Operation tick, leave;
    std::unique_ptr<Session> session;
    AtClock(std::int64_t rank, const std::shared_ptr<Device>& device) {
      GraphStore& store = *graph.store();
      clock = build<StalenessClock>(store, {}, {.replicas = 2, .staleness = 0}, {.name = "clock"});
      const AnyOutput joined = build<StalenessClockJoin>({clock}, {.rank = rank});
      const auto fed = placeholder<std::int64_t>(graph, {}, {.name = "member"});
      member = joined;
      step = build<StalenessClockWait>({clock, fed});
      tick = build<StalenessClockTick>({clock, fed});
      leave = build<StalenessClockLeave>({clock}, {.rank = rank});
      session = std::make_unique<Session>(graph, SessionOptions{.devices = {device}});
      id = session->run(member).as<std::int64_t>();
      feed = fed;
    }
    Output<std::int64_t> feed;
    Tensor<std::int64_t> id;
  } first(0, device), second(1, device);
  first.session->run({{first.feed, first.id}}, first.tick);
  CHECK(
      code_of([&] {
        first.session->run(RunOptions{.deadline = std::chrono::milliseconds(20)}, {{first.feed, first.id}}, first.step);
      }) == Code::deadline_exceeded);
  second.session->run({{second.feed, second.id}}, second.tick);
  CHECK(first.session->run({{first.feed, first.id}}, first.step).as<std::int64_t>().scalar() == 1);
  second.session->run(second.leave);
  CHECK(code_of([&] { second.session->run({{second.feed, second.id}}, second.step); }) == Code::aborted);
}
