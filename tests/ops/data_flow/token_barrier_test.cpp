#include <dflow/ops/data_flow/token_barrier.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/state/token_barrier_state.hpp>

#include <chrono>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

using Ranks = std::vector<std::int32_t>;

/// The outcome of a call, once the barrier has told it.
struct Told {
  bool is_told = false;
  Status status;
  std::int64_t step = -100;
  Ranks ranks, left;
};

std::shared_ptr<Told> wait_at(TokenBarrierState& barrier, std::int64_t rank, std::int64_t local_step,
                              const CancellationToken& token = {}) {
  auto told = std::make_shared<Told>();
  barrier.wait_async(rank, local_step, token, [told](Status status, std::int64_t step) {
    REQUIRE_FALSE(told->is_told);
    *told = {true, std::move(status), step, {}, {}};
  });
  return told;
}

std::shared_ptr<Told> collect_at(TokenBarrierState& barrier, const CancellationToken& token = {},
                                 std::int64_t leader = 0, bool has_heard = true) {
  auto told = std::make_shared<Told>();
  const auto done = [told](Status status, TokenBarrierState::Collected collected) {
    REQUIRE_FALSE(told->is_told);
    *told = {true, std::move(status), 0, std::move(collected.arrived), std::move(collected.left)};
  };
  barrier.collect_async(leader, token, done, has_heard);
  return told;
}

std::shared_ptr<Told> leave_barrier(TokenBarrierState& barrier, std::int64_t rank, const CancellationToken& token = {},
                                    bool for_good = false) {
  auto told = std::make_shared<Told>();
  const auto done = [told](Status status) {
    REQUIRE_FALSE(told->is_told);
    *told = {true, std::move(status), 0, {}, {}};
  };
  barrier.leave_async(rank, token, done, for_good);
  return told;
}

/// Holds the leader's place, or a replica's.
std::shared_ptr<Told> hold_place(TokenBarrierState& barrier, std::int64_t rank, const CancellationToken& token,
                                 std::int64_t leader = 0) {
  auto told = std::make_shared<Told>();
  auto done = [told](Status status) {
    REQUIRE_FALSE(told->is_told);
    *told = {true, std::move(status), 0, {}, {}};
  };
  if (rank < 0) barrier.hold_leader_async(leader, token, std::move(done));
  if (rank >= 0) barrier.hold_replica_async(rank, token, std::move(done));
  return told;
}

}  // namespace

TEST_CASE("A barrier tells who has arrived, and lets all go on when the step has been made") {
  TokenBarrierState barrier("b", 3, 3);
  const auto early = wait_at(barrier, 0, -1);
  CHECK_FALSE(early->is_told);
  barrier.open(5);
  CHECK(early->is_told);
  CHECK(early->step == 5);
  CHECK(wait_at(barrier, 1, -1)->step == 5);
  const auto collected = collect_at(barrier);
  barrier.arrive(2, 5);
  barrier.arrive(0, 5);
  barrier.arrive(0, 5);
  const auto second = wait_at(barrier, 2, 5), first = wait_at(barrier, 0, 5);
  CHECK_FALSE(collected->is_told);
  CHECK(barrier.missing() == Ranks{1});
  barrier.arrive(1, 5);
  CHECK(collected->ranks == Ranks{0, 1, 2});
  CHECK_FALSE(first->is_told);
  barrier.advance(6);
  CHECK(first->step == 6);
  CHECK(second->step == 6);
  barrier.arrive(1, 5);  // too late
  CHECK(barrier.missing() == Ranks{0, 1, 2});
}

TEST_CASE("Fewer arrivals make a step than there are replicas, and fewer still when some have left") {
  TokenBarrierState barrier("b", 4, 3);
  barrier.open(0);
  for (const std::int64_t rank : {3, 1}) barrier.arrive(rank, 0);
  auto collected = collect_at(barrier);
  CHECK_FALSE(collected->is_told);
  static_cast<void>(leave_barrier(barrier, 0));
  CHECK(collected->ranks.empty());  // there are not enough, but the leader is to know
  CHECK(collected->left == Ranks{0});
  collected = collect_at(barrier);
  CHECK_FALSE(collected->is_told);
  static_cast<void>(leave_barrier(barrier, 2));
  CHECK(collected->ranks == Ranks{1, 3});
  CHECK(collected->left == Ranks{0, 2});
  barrier.advance(1);
  barrier.arrive(1, 1);
  static_cast<void>(leave_barrier(barrier, 3));
  CHECK(collect_at(barrier)->ranks == Ranks{1});
  static_cast<void>(leave_barrier(barrier, 1));
  CHECK(collect_at(barrier)->ranks == Ranks{1});  // the gradient that it has brought counts
  barrier.advance(2);
  CHECK(collect_at(barrier)->status.code() == Code::out_of_range);
  CHECK(barrier.num_present() == 0);
  // One replica comes back.
  CHECK(wait_at(barrier, 0, -1)->step == 2);
  barrier.arrive(0, 2);
  CHECK(collect_at(barrier)->ranks == Ranks{0});
}

TEST_CASE("Who leaves a barrier is told so when its leader knows, or nobody leads") {
  TokenBarrierState barrier("b", 3, 3);
  CHECK(leave_barrier(barrier, 2)->is_told);
  barrier.open(0, 7);
  auto leaves = leave_barrier(barrier, 1);
  CHECK(collect_at(barrier, {}, 7)->left == Ranks{1, 2});
  CHECK_FALSE(leaves->is_told);  // the answer to the leader may be lost
  auto collects = collect_at(barrier, {}, 7);
  CHECK_FALSE(collects->is_told);
  CHECK(leaves->is_told);
  CHECK(leave_barrier(barrier, 1)->is_told);
  CancellationSource source;
  leaves = leave_barrier(barrier, 0, source.token());
  CHECK(collects->status.code() == Code::out_of_range);
  source.cancel();
  CHECK(leaves->status.code() == Code::cancelled);
  CHECK(barrier.num_present() == 0);  // the leader was told: a replica that lives begins again
  leaves = leave_barrier(barrier, 0);
  CHECK_FALSE(leaves->is_told);
  barrier.close(TokenBarrierState::Close::done, 7);
  CHECK(leaves->is_told);
  CHECK(leaves->status.ok());
}

TEST_CASE("A leader that has not heard who has left a barrier is told again, and who leaves is not told before") {
  TokenBarrierState barrier("b", 3, 3);
  barrier.open(0, 7);
  const auto leaves = leave_barrier(barrier, 1);
  for (int lost = 0; lost < 2; ++lost) CHECK(collect_at(barrier, {}, 7, false)->left == Ranks{1});
  CHECK_FALSE(leaves->is_told);
  const auto again = leave_barrier(barrier, 1);
  const auto collects = collect_at(barrier, {}, 7);
  CHECK_FALSE(collects->is_told);
  CHECK(leaves->is_told);
  CHECK(again->is_told);
  CHECK(leave_barrier(barrier, 1)->is_told);
  barrier.abandon(Status::cancelled("the test is over"));
}

TEST_CASE("Who leaves a barrier for good has left when its call is cancelled") {
  for (const bool for_good : {false, true}) {
    TokenBarrierState barrier("b", 2, 2);
    barrier.open(0, 7);
    CancellationSource first, second;
    const auto leaves = leave_barrier(barrier, 1, first.token(), for_good);
    const auto leaves_again = leave_barrier(barrier, 1, second.token(), for_good);
    first.cancel();
    second.cancel();
    CHECK(leaves->status.code() == Code::cancelled);
    CHECK(barrier.num_present() == (for_good ? 1 : 2));
    barrier.arrive(0, 0);
    const auto collects = collect_at(barrier, {}, 7);
    CHECK(collects->is_told == for_good);
    if (for_good) CHECK(collects->left == Ranks{1});
    CHECK(wait_at(barrier, 1, -1)->is_told == !for_good);  // another process: it waits until this step has been made
    CHECK(barrier.num_present() == 2);
    barrier.abandon(Status::cancelled("the test is over"));
  }
}

TEST_CASE("Who is leaving a barrier when its leader fails is to come back, and is waited for") {
  using Close = TokenBarrierState::Close;
  for (const bool by_next_leader : {false, true}) {
    TokenBarrierState barrier("b", 4, 4);
    barrier.open(8, 1);
    const auto known = leave_barrier(barrier, 3);
    CHECK(collect_at(barrier, {}, 1)->left == Ranks{3});
    static_cast<void>(collect_at(barrier, {}, 1));
    CHECK(known->status.ok());
    const auto told = leave_barrier(barrier, 0), untold = leave_barrier(barrier, 1),
               remembered = leave_barrier(barrier, 2);
    CHECK(barrier.num_present() == 0);
    if (!by_next_leader) barrier.close(Close::lost, 1);
    barrier.open(4, 2, Ranks{2, 3});
    CHECK(told->status.code() == Code::aborted);
    CHECK(untold->status.code() == Code::aborted);
    CHECK(remembered->status.code() == (by_next_leader ? Code::ok : Code::aborted));
    CHECK(barrier.missing() == Ranks{0, 1});
    barrier.close(Close::lost, 2);
    CHECK(leave_barrier(barrier, 0)->status.code() == Code::aborted);  // the steps it has made may be lost
    CHECK(barrier.num_present() == 2);
    CHECK(leave_barrier(barrier, 3)->status.ok());
  }
}

TEST_CASE("Who comes while a step is being made does it after all when it turns out to be wanted") {
  TokenBarrierState barrier("b", 2, 2);
  barrier.open(5);
  static_cast<void>(leave_barrier(barrier, 1));
  barrier.arrive(0, 5);
  CHECK(collect_at(barrier)->ranks == Ranks{0});  // the only one that is left
  const auto back = wait_at(barrier, 1, -1);
  CHECK_FALSE(back->is_told);
  const auto collects = collect_at(barrier);  // instead of making the step with one
  CHECK_FALSE(collects->is_told);
  CHECK(back->step == 5);
  barrier.arrive(1, 5);
  CHECK(collects->ranks == Ranks{0, 1});
}

TEST_CASE("A new process of a replica that has arrived does the step too when it turns out to be wanted") {
  for (const bool is_new_process : {true, false}) {
    TokenBarrierState barrier("b", 2, 2);
    barrier.open(5);
    static_cast<void>(leave_barrier(barrier, 1));
    barrier.arrive(0, 5);
    CHECK(collect_at(barrier)->ranks == Ranks{0});
    const auto waits = wait_at(barrier, 0, is_new_process ? -1 : 5), back = wait_at(barrier, 1, 4);
    CHECK_FALSE(waits->is_told);
    CHECK_FALSE(back->is_told);
    const auto collects = collect_at(barrier);
    CHECK_FALSE(collects->is_told);
    CHECK(back->step == 5);
    CHECK(waits->is_told == is_new_process);  // the other process has done it
    barrier.arrive(1, 5);
    CHECK(collects->ranks == Ranks{0, 1});
    barrier.advance(6);
    CHECK(waits->step == (is_new_process ? 5 : 6));
  }
}

TEST_CASE("Who comes while a step is being made waits for the next one") {
  using Close = TokenBarrierState::Close;
  for (const int how : {0, 1, 2, 3}) {
    TokenBarrierState barrier("b", 3, 2);
    barrier.open(5, 1);
    for (const std::int64_t rank : {0, 1}) barrier.arrive(rank, 5);
    CHECK(collect_at(barrier, {}, 1)->ranks == Ranks{0, 1});
    const auto begins = wait_at(barrier, 1, -1), late = wait_at(barrier, 2, 4), arrived = wait_at(barrier, 0, 5);
    CHECK_FALSE(begins->is_told);
    CHECK_FALSE(late->is_told);
    if (how == 0) barrier.advance(6, 1);
    if (how == 1) barrier.open(3, 2);
    if (how == 2) {
      barrier.close(Close::lost, 1);
      CHECK(late->status.code() == Code::aborted);
      CHECK_FALSE(begins->is_told);
      barrier.open(3, 2);
    }
    if (how == 3) {  // asked once more, with what has arrived
      CHECK(collect_at(barrier, {}, 1)->ranks == Ranks{0, 1});
      CHECK_FALSE(begins->is_told);
      CHECK_FALSE(late->is_told);
      barrier.advance(6, 1);
    }
    const std::int64_t next = how == 0 || how == 3 ? 6 : 3;
    CHECK(begins->step == next);
    if (how != 2) CHECK(arrived->step == next);
    if (how != 2) CHECK(late->step == next);
  }
}

TEST_CASE("Who leaves a barrier as a replica that comes again is told so") {
  for (const bool arrives : {false, true}) {
    TokenBarrierState barrier("b", 2, 2);
    barrier.open(3);
    const auto leaves = leave_barrier(barrier, 1);
    const auto other = leave_barrier(barrier, 0);
    CHECK_FALSE(leaves->is_told);
    if (arrives) barrier.arrive(1, 3);
    if (!arrives) CHECK(wait_at(barrier, 1, -1)->status.ok());
    REQUIRE(leaves->is_told);
    CHECK(leaves->status.code() == Code::already_exists);
    CHECK(mentions(leaves->status, "another process is replica 1 now"));
    CHECK_FALSE(other->is_told);
    CHECK(barrier.num_present() == 1);
  }
}

TEST_CASE("Of two that wait as one replica at a barrier the one that began last does") {
  TokenBarrierState barrier("b", 2, 2);
  const auto first = wait_at(barrier, 1, -1), other = wait_at(barrier, 0, -1);
  const auto second = wait_at(barrier, 1, -1);
  REQUIRE(first->is_told);
  CHECK(first->status.code() == Code::already_exists);
  CHECK(mentions(first->status, "another process is replica 1 now"));
  CHECK_FALSE(other->is_told);
  barrier.open(3);
  CHECK(second->step == 3);
  CHECK(other->step == 3);
  barrier.arrive(1, 3);
  const auto done_first = wait_at(barrier, 1, 3);
  CHECK_FALSE(done_first->is_told);
  const auto begun = wait_at(barrier, 1, -1);
  CHECK(begun->step == 3);
  REQUIRE(done_first->is_told);
  CHECK(done_first->status.code() == Code::already_exists);
}

TEST_CASE("A wait that was cancelled before it began takes nobody's place at a barrier") {
  TokenBarrierState barrier("b", 2, 2);
  const auto waits = wait_at(barrier, 1, -1);
  CancellationSource source;
  source.cancel();
  CHECK(wait_at(barrier, 1, -1, source.token())->status.code() == Code::cancelled);
  CHECK_FALSE(waits->is_told);
}

TEST_CASE("Who leads tells a barrier that was started anew who has left, and goes on without them") {
  TokenBarrierState barrier("b", 3, 3);
  const auto back = wait_at(barrier, 2, -1);  // the leader does not know yet that this one is back
  const Ranks left{1, 2};
  barrier.open(4, 7, left);
  CHECK(back->step == 4);
  CHECK(barrier.missing() == Ranks{0, 2});
  const auto collects = collect_at(barrier, {}, 7);
  for (const std::int64_t rank : {0, 2}) barrier.arrive(rank, 4);
  CHECK(collects->ranks == Ranks{0, 2});
  CHECK(collects->left == Ranks{1});
  CHECK(leave_barrier(barrier, 1)->is_told);
  barrier.advance(5, 7);
  // All have left, and the answer that tells the leader so is lost: the leader opens the barrier once more.
  const auto leaves = leave_barrier(barrier, 0), known = leave_barrier(barrier, 2);
  CHECK(collect_at(barrier, {}, 7)->status.code() == Code::out_of_range);
  barrier.open(5, 8, left);
  CHECK(known->status.ok());
  CHECK(leaves->status.code() == Code::aborted);  // it is to come back
  CHECK(barrier.missing() == Ranks{0});
}

TEST_CASE("A replica that leaves for good is not waited for, though its leader fails or its call is cancelled") {
  TokenBarrierState barrier("b", 4, 4);
  barrier.open(0, 7);
  CancellationSource source;
  const auto leave_for_good = [&](std::int64_t rank, const CancellationToken& token = {}) {
    return leave_barrier(barrier, rank, token, true);
  };
  const auto cancelled = leave_for_good(1, source.token()), lost = leave_for_good(2);
  source.cancel(Status::cancelled("waited too long"));
  CHECK(cancelled->status.code() == Code::cancelled);
  barrier.close(TokenBarrierState::Close::lost, 7);
  CHECK(lost->status.code() == Code::aborted);
  CHECK(leave_for_good(3)->status.code() == Code::aborted);
  barrier.open(0, 8);  // the next leader is told
  CHECK(barrier.missing() == Ranks{0});
  CHECK(collect_at(barrier, {}, 8)->left == Ranks{1, 2, 3});
  const auto collects = collect_at(barrier, {}, 8);
  CHECK(leave_for_good(2)->status.ok());
  barrier.arrive(0, 0);
  CHECK(collects->ranks == Ranks{0});
  CHECK(barrier.saved_state()[0].as<bool>()(2));
  static_cast<void>(wait_at(barrier, 1, -1));  // it has been started again
  CHECK(barrier.missing() == Ranks{1});
}

TEST_CASE("A leader whose place another one has taken does nothing at a barrier any more") {
  TokenBarrierState barrier("b", 2, 2);
  barrier.open(3, 7);
  barrier.open(3, 8);
  for (const std::int64_t rank : {0, 1}) barrier.arrive(rank, 3);
  const auto waits = wait_at(barrier, 0, 3);
  CHECK(code_of([&] { barrier.close(TokenBarrierState::Close::lost, 7); }) == Code::already_exists);
  CHECK(code_of([&] { barrier.advance(4, 7); }) == Code::already_exists);
  CHECK(code_of([&] { barrier.drop_missing(7); }) == Code::already_exists);
  CHECK(code_of([&] { collect_at(barrier, {}, 7); }) == Code::already_exists);
  CHECK_FALSE(waits->is_told);
  CHECK(barrier.step() == 3);
  CHECK(collect_at(barrier, {}, 8)->ranks == Ranks{0, 1});
  barrier.advance(4, 8);
  CHECK(waits->step == 4);
}

TEST_CASE("A replica whose arrival was forgotten does not wait for itself") {
  TokenBarrierState barrier("b", 2, 2);
  barrier.open(4);
  barrier.arrive(0, 4);
  barrier.open(4);  // between its arrival and its waiting
  const auto again = wait_at(barrier, 0, 4);
  CHECK(again->step == 4);
  barrier.arrive(0, 4);
  CHECK_FALSE(wait_at(barrier, 0, 4)->is_told);
}

TEST_CASE("A barrier opened again has those who wait do their step again, and forgets what has arrived") {
  TokenBarrierState barrier("b", 2, 2);
  barrier.open(7);
  barrier.arrive(0, 7);
  const auto waiting = wait_at(barrier, 0, 7);
  const auto before = collect_at(barrier);
  barrier.open(7);
  CHECK(waiting->step == 7);
  CHECK(waiting->status.ok());
  CHECK(before->status.code() == Code::already_exists);
  CHECK(barrier.missing() == Ranks{0, 1});
  barrier.open(3);
  CHECK(wait_at(barrier, 1, 7)->step == 3);
  const auto one = collect_at(barrier), other = collect_at(barrier);
  CHECK(one->status.code() == Code::already_exists);
  CHECK_FALSE(other->is_told);
  const auto leaves = leave_barrier(barrier, 0);
  barrier.open(3);
  CHECK(leaves->status.code() == Code::aborted);
  CHECK(barrier.num_present() == 2);
  static_cast<void>(leave_barrier(barrier, 1));
  barrier.close(TokenBarrierState::Close::done);
  CHECK(leave_barrier(barrier, 1)->is_told);
  barrier.open(0);  // the next training
  CHECK(barrier.num_present() == 2);
}

TEST_CASE("A closed barrier says why to all who wait, but to those who have no step yet") {
  using Close = TokenBarrierState::Close;
  const std::map<Close, std::pair<Code, std::string>> ends{
      {Close::late, {Code::deadline_exceeded, "replicas 0, 2 have not arrived at step 4"}},
      {Close::done, {Code::out_of_range, "last step, 4"}},
      {Close::lost, {Code::aborted, "failed at step 4"}}};
  for (const auto& [why, end] : ends) {
    TokenBarrierState barrier("b", 3, 3);
    barrier.open(4);
    barrier.arrive(1, 4);
    const auto waiting = wait_at(barrier, 1, 4);
    const auto collecting = collect_at(barrier);
    barrier.close(why);
    for (const auto& told : {waiting, collecting, wait_at(barrier, 2, 3), wait_at(barrier, 2, 4)}) {
      CHECK(told->status.code() == end.first);
      CHECK(told->status.message().find(end.second) != std::string::npos);
    }
    CHECK(collect_at(barrier)->status.code() == Code::aborted);
    CHECK(code_of([&] { barrier.advance(5); }) == Code::aborted);
    const auto next = wait_at(barrier, 0, -1);
    for (const auto& [again, told] : ends) barrier.close(again);
    CHECK_FALSE(next->is_told);
    barrier.open(9);
    CHECK(next->step == 9);
  }
  TokenBarrierState never_opened("b", 1, 1);
  const auto first = wait_at(never_opened, 0, -1);
  never_opened.close(Close::lost);
  CHECK_FALSE(first->is_told);
  never_opened.open(0);
  CHECK(first->step == 0);
}

TEST_CASE("Those who are missing are given up if anybody has come, until they come back") {
  TokenBarrierState barrier("b", 3, 3);
  barrier.open(0);
  CHECK(barrier.drop_missing().empty());
  const auto collected = collect_at(barrier);
  barrier.arrive(1, 0);
  CHECK(barrier.drop_missing() == Ranks{0, 2});
  CHECK(collected->ranks == Ranks{1});
  barrier.advance(1);
  barrier.arrive(2, 0);  // its gradient is too late, but it is back
  const auto next = collect_at(barrier);
  barrier.arrive(1, 1);
  CHECK_FALSE(next->is_told);
  barrier.arrive(2, 1);
  CHECK(next->ranks == Ranks{1, 2});
}

TEST_CASE("Waiting and collecting end when they are cancelled") {
  TokenBarrierState barrier("b", 2, 2);
  barrier.open(0);
  CancellationSource source;
  barrier.arrive(0, 0);
  const auto waiting = wait_at(barrier, 0, 0, source.token());
  const auto collecting = collect_at(barrier, source.token());
  source.cancel(Status::cancelled("enough"));
  CHECK(waiting->status.message() == "enough");
  CHECK(collecting->status.message() == "enough");
  CHECK(wait_at(barrier, 0, 0, source.token())->status.message() == "enough");
  barrier.arrive(0, 0);
  barrier.arrive(1, 0);
  CHECK(collect_at(barrier)->ranks == Ranks{0, 1});
}

TEST_CASE("Who waits at a barrier may let go of it when it is told") {
  CancellationSource source;
  source.cancel();
  auto barrier = std::make_shared<TokenBarrierState>("b", 1, 1);
  barrier->wait_async(0, -1, source.token(), [&barrier](const Status& status, std::int64_t) {
    CHECK(status.code() == Code::cancelled);
    barrier = nullptr;
  });
  CHECK(barrier == nullptr);
  barrier = std::make_shared<TokenBarrierState>("b", 1, 1);
  barrier->open(0);
  barrier->collect_async(0, source.token(),
                         [&barrier](const Status&, const TokenBarrierState::Collected&) { barrier = nullptr; });
  CHECK(barrier == nullptr);
}

TEST_CASE("Who is told at a barrier may use it") {
  TokenBarrierState barrier("b", 1, 1);
  std::int64_t seen = -1;
  barrier.wait_async(0, -1, {}, [&](const Status&, std::int64_t step) {
    barrier.collect_async(0, {}, [&](const Status&, const TokenBarrierState::Collected& collected) {
      CHECK(collected.arrived == Ranks{0});
      barrier.advance(step + 1);
    });
    barrier.arrive(0, step);
    seen = barrier.step();
  });
  barrier.open(5);
  CHECK(seen == 6);
}

TEST_CASE("Threads that arrive, wait and are cancelled at a barrier are each told once, and no step is lost") {
  constexpr std::int64_t num_steps = 300;
  constexpr int num_replicas = 3;
  TokenBarrierState barrier("b", num_replicas, num_replicas);
  const auto wait = [&](std::int64_t rank, std::int64_t local_step, const CancellationToken& token) {
    std::promise<std::pair<Status, std::int64_t>> told;
    barrier.wait_async(rank, local_step, token, [&](Status status, std::int64_t step) {
      told.set_value({std::move(status), step});
    });
    return told.get_future().get();
  };
  std::vector<std::int64_t> ended(num_replicas);
  std::vector<std::jthread> threads;
  threads.reserve(num_replicas + 1);
  for (std::int64_t rank = 0; rank < num_replicas; ++rank) {
    threads.emplace_back([&, rank] {
      for (std::int64_t step = wait(rank, -1, {}).second; step < num_steps;) {
        barrier.arrive(rank, step);
        // A wait that is cancelled while it may be served, and then the wait that counts.
        CancellationSource source;
        std::jthread canceller([source]() mutable { source.cancel(); });
        const auto [status, next] = wait(rank, step, source.token());
        step = status.ok() ? next : wait(rank, step, {}).second;
        ended[static_cast<std::size_t>(rank)] = step;
      }
      static_cast<void>(leave_barrier(barrier, rank));
    });
  }
  Status last;
  threads.emplace_back([&] {
    barrier.open(0);
    for (std::int64_t step = 0; last.ok();) {
      std::promise<Status> told;
      bool has_arrived = false;
      barrier.collect_async(0, {}, [&](Status status, const TokenBarrierState::Collected& collected) {
        has_arrived = !collected.arrived.empty();
        told.set_value(std::move(status));
      });
      last = told.get_future().get();
      if (last.ok() && has_arrived) barrier.advance(++step);
    }
  });
  threads.clear();
  CHECK(last.code() == Code::out_of_range);
  CHECK(ended == std::vector<std::int64_t>(num_replicas, num_steps));
}

TEST_CASE("A rank that the barrier has not is refused, and so are sizes that make no sense") {
  TokenBarrierState barrier("b", 2, 1);
  CHECK(code_of([&] { barrier.arrive(2, 0); }) == Code::invalid_argument);
  CHECK(code_of([&] { static_cast<void>(leave_barrier(barrier, -1)); }) == Code::invalid_argument);
  CHECK(code_of([&] { wait_at(barrier, 2, 0); }) == Code::invalid_argument);
  CHECK(code_of([] { TokenBarrierState("b", 0, 0); }) == Code::invalid_argument);
  CHECK(code_of([] { TokenBarrierState("b", 2, 3); }) == Code::invalid_argument);
  CHECK(code_of([] { TokenBarrierState("b", -1, 1); }) == Code::invalid_argument);
}

TEST_CASE("a chief that does not lead tells those who wait and those who come, until all know") {
  TokenBarrierState barrier("b", 4, 4);
  const auto end_training = [&](const CancellationToken& token) {
    auto told = std::make_shared<Told>();
    barrier.end_async(0, token, [told](Status status) { *told = {true, std::move(status), 0, {}, {}}; });
    return told;
  };
  const auto first = wait_at(barrier, 1, -1);
  CancellationSource lost;
  const auto lost_end = end_training(lost.token());
  CHECK(first->status.code() == Code::out_of_range);
  CHECK_THAT(std::string(first->status.message()), Catch::Contains("replica 0, was told to stop before it led"));
  CHECK_FALSE(lost_end->is_told);
  lost.cancel(Status::cancelled("the chief's process is lost"));
  CHECK(lost_end->status.code() == Code::cancelled);
  CHECK_FALSE(wait_at(barrier, 1, -1)->is_told);  // for another chief

  const auto end = end_training({});
  CHECK(wait_at(barrier, 2, -1)->status.code() == Code::out_of_range);
  CHECK_FALSE(end->is_told);
  CHECK(leave_barrier(barrier, 3)->status.ok());
  CHECK(end->is_told);
  CHECK(end->status.ok());

  const auto anew = wait_at(barrier, 1, -1);  // the next training
  CHECK_FALSE(anew->is_told);
  const auto another_end = end_training({});
  CHECK(anew->status.code() == Code::out_of_range);
  barrier.open(5, 1);
  CHECK(another_end->status.ok());  // another chief leads
}

TEST_CASE("The ops of a barrier do in steps what it does") {
  Graph graph;
  GraphStore& store = *graph.store();
  const AnyOutput handle = build<TokenBarrier>(store, {}, {.replicas = 3, .aggregate = 2});
  auto step = placeholder<std::int64_t>(graph, Shape{});
  auto leader = placeholder<std::int64_t>(graph, Shape{});
  const auto nobody = constant(graph, Tensor<std::int32_t>(Shape{0}));
  const Operation open = build<TokenBarrierOpen>({handle, step, leader, nobody});
  const Operation advance = build<TokenBarrierAdvance>({handle, step, leader});
  const BuiltNode collected = build<TokenBarrierCollect>({handle, leader, constant(graph, true)});
  const Output<std::int32_t> collect{collected.output(0)}, left{collected.output(1)};
  const Output<std::int32_t> drop{AnyOutput(build<TokenBarrierDropMissing>({handle, leader}))};
  std::vector<Operation> arrive, leave;
  std::vector<Output<std::int64_t>> wait;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    arrive.push_back(Operation(build<TokenBarrierArrive>({handle, step}, {.rank = rank})));
    leave.push_back(Operation(build<TokenBarrierLeave>({handle}, {.rank = rank})));
    wait.emplace_back(AnyOutput(build<TokenBarrierWait>({handle, step}, {.rank = rank})));
  }
  const Operation close = build<TokenBarrierClose>({handle, leader}, {.reason = "done"});
  Session session(graph, {.num_threads = 2});
  const auto at = [&](std::int64_t value) { return Feed{step, Tensor<std::int64_t>(value)}; };
  const Feed by{leader, Tensor<std::int64_t>(7)}, by_another{leader, Tensor<std::int64_t>(8)};
  session.run({at(0), by}, open);
  session.run({at(0)}, arrive[2]);
  auto waiting = std::async(std::launch::async, [&] { return session.run({at(0)}, wait[2]).scalar(); });
  session.run({at(0)}, arrive[0]);
  const auto [ranks, gone] = session.run({by}, collect, left);
  CHECK(Ranks(ranks.begin(), ranks.end()) == Ranks{0, 2});
  CHECK(gone.num_elements() == 0);
  CHECK(code_of([&] { session.run({at(1), by_another}, advance); }) == Code::already_exists);
  session.run({at(1), by}, advance);
  CHECK(waiting.get() == 1);
  session.run({at(1)}, arrive[0]);
  const Tensor<std::int32_t> dropped = session.run({by}, drop);
  CHECK(Ranks(dropped.begin(), dropped.end()) == Ranks{1, 2});
  CHECK(code_of([&] { session.run({.deadline = std::chrono::milliseconds(20)}, {at(1)}, wait[0]); }) ==
        Code::deadline_exceeded);
  CHECK(session.run({at(1)}, wait[1]).scalar() == 1);                             // replica 1 has not arrived
  auto leaving = std::async(std::launch::async, [&] { session.run(leave[0]); });  // until the leader knows
  while (session.run({by}, left).num_elements() == 0) continue;
  CHECK(code_of([&] { session.run({.deadline = std::chrono::milliseconds(1)}, {by}, left); }) ==
        Code::deadline_exceeded);
  leaving.get();
  session.run({by}, close);
  for (const Operation& each : leave) session.run(each);
  CHECK(code_of([&] { session.run({at(1)}, wait[0]); }) == Code::out_of_range);
  CHECK(code_of([&] { build<TokenBarrierClose>({handle, leader}, {.reason = "tired"}); }) == Code::invalid_argument);
  CHECK(code_of([&] { build<TokenBarrier>(store, {}, {.replicas = 1, .aggregate = 2}); }) == Code::invalid_argument);
}

TEST_CASE("who leaves twice stays only if nobody leaves any more under its rank") {
  const bool both = GENERATE(false, true);
  TokenBarrierState barrier("barrier", 2, 2);
  barrier.open(0, 7);
  CancellationSource first, second;
  const auto leave = [&](const CancellationSource& source) {
    auto told = std::make_shared<Status>();
    barrier.leave_async(1, source.token(), [told](Status status) { *told = std::move(status); });
    return told;
  };
  const auto first_told = leave(first), second_told = leave(second);
  first.cancel(Status::cancelled("its connection is lost"));
  CHECK(first_told->code() == Code::cancelled);
  if (both) second.cancel(Status::cancelled("its connection is lost"));
  barrier.arrive(0, barrier.step());
  const auto collected = collect_at(barrier, {}, 7);
  CHECK(collected->is_told == !both);
  CHECK(barrier.num_present() == (both ? 2 : 1));
  if (both) return barrier.abandon(Status::cancelled("the test is over"));
  CHECK(collected->left == Ranks{1});
  barrier.advance(1, 7);
  const auto again = collect_at(barrier, {}, 7);  // it knows now who has left
  CHECK(second_told->ok());
  barrier.abandon(Status::cancelled("the test is over"));
}

TEST_CASE("a leader whose process is lost closes its barrier, unless another one leads or it has closed it") {
  using Close = TokenBarrierState::Close;
  for (const int how : {0, 1, 2}) {
    TokenBarrierState barrier("b", 2, 2);
    barrier.open(3, 7);
    CancellationSource lost;
    const auto held = hold_place(barrier, -1, lost.token(), 7);
    barrier.arrive(0, 3);
    const auto waits = wait_at(barrier, 0, 3), leaves = leave_barrier(barrier, 1), begins = wait_at(barrier, 1, -1);
    if (how == 1) barrier.open(5, 8);
    if (how == 2) barrier.close(Close::late, 7);
    CHECK(held->is_told == (how != 0));
    const auto next = wait_at(barrier, 0, how == 1 ? 5 : -1);
    lost.cancel(Status::cancelled("its connection is lost"));
    REQUIRE(held->is_told);
    if (how == 0) {
      CHECK(waits->status.code() == Code::already_exists);  // replaced by `next`
      CHECK(leaves->status.code() == Code::already_exists);
      CHECK(wait_at(barrier, 0, 3)->status.code() == Code::aborted);
      CHECK(leave_barrier(barrier, 1)->status.code() == Code::aborted);
    }
    if (how == 1) CHECK(barrier.step() == 5);
    if (how == 1) CHECK_FALSE(wait_at(barrier, 1, -1)->status.code() == Code::aborted);
    if (how == 2) CHECK(wait_at(barrier, 0, 3)->status.code() == Code::deadline_exceeded);
    barrier.abandon(Status::cancelled("the test is over"));
  }
}

TEST_CASE("those who wait at a barrier are told that the process of its leader is lost") {
  TokenBarrierState barrier("b", 3, 3);
  barrier.open(3, 7);
  CancellationSource lost;
  static_cast<void>(hold_place(barrier, -1, lost.token(), 7));
  barrier.arrive(0, 3);
  const auto waits = wait_at(barrier, 0, 3), leaves = leave_barrier(barrier, 1), collects = collect_at(barrier, {}, 7);
  CHECK(collects->left == Ranks{1});
  lost.cancel(Status::cancelled("its connection is lost"));
  CHECK(waits->status.code() == Code::aborted);
  CHECK(mentions(waits->status, "who leads has failed at step 3"));
  CHECK(leaves->status.code() == Code::aborted);
  CHECK(code_of([&] { static_cast<void>(hold_place(barrier, -1, {}, 7)); }) == Code::aborted);
  barrier.open(3, 8);
  CHECK(code_of([&] { static_cast<void>(hold_place(barrier, -1, {}, 7)); }) == Code::already_exists);
}

TEST_CASE("a leader that is told to stop ends the training of all, and the next one begins anew") {
  using Close = TokenBarrierState::Close;
  TokenBarrierState barrier("b", 3, 3);
  barrier.open(3, 7);
  for (const std::int64_t rank : {0, 2}) barrier.arrive(rank, 3);
  const auto waits = wait_at(barrier, 0, 3), leaves = leave_barrier(barrier, 1);
  barrier.close(Close::stopped, 7);
  CHECK(waits->status.code() == Code::out_of_range);
  CHECK(mentions(waits->status, "told to stop, and step 3 is not made"));
  CHECK(leaves->status.ok());
  barrier.arrive(2, 3);
  CHECK(wait_at(barrier, 2, 3)->status.code() == Code::out_of_range);
  CHECK(leave_barrier(barrier, 2)->status.ok());
  const std::vector<AnyTensor> saved = barrier.saved_state();
  for (const bool has_left : saved.at(0).as<bool>()) CHECK_FALSE(has_left);  // who trains on from here waits for all
  const auto begins = wait_at(barrier, 1, -1);
  CHECK_FALSE(begins->is_told);
  barrier.open(3, 8);
  CHECK(begins->step == 3);
  CHECK(barrier.missing() == Ranks{0, 1, 2});
}

TEST_CASE("who leaves a barrier while it waits there goes on at once, and what it brought counts") {
  TokenBarrierState barrier("b", 2, 2);
  barrier.open(3);
  barrier.arrive(1, 3);
  const auto waits = wait_at(barrier, 1, 3), other = wait_at(barrier, 0, -1);
  CHECK(other->step == 3);
  CHECK_FALSE(waits->is_told);
  static_cast<void>(leave_barrier(barrier, 1));
  CHECK(waits->status.ok());
  CHECK(waits->step == 3);
  barrier.arrive(0, 3);
  CHECK(collect_at(barrier)->ranks == Ranks{0, 1});
}

TEST_CASE("of the replicas that nobody hears of at the end those are given up whose processes are lost") {
  using GiveUp = TokenBarrierState::GiveUp;
  TokenBarrierState barrier("b", 4, 3);
  barrier.open(3);
  CancellationSource alive, dies, replaced;
  const auto held = hold_place(barrier, 1, alive.token()), lost = hold_place(barrier, 2, dies.token());
  const auto before = hold_place(barrier, 3, replaced.token()), after = hold_place(barrier, 3, alive.token());
  CHECK(before->status.code() == Code::already_exists);
  dies.cancel(Status::cancelled("its connection is lost"));
  CHECK(lost->is_told);
  CHECK(barrier.drop_missing(0, GiveUp::none) == Ranks{0, 1, 2, 3});
  barrier.arrive(1, 3);
  CHECK(barrier.drop_missing(0, GiveUp::lost).empty());  // that step waits for all
  barrier.advance(4);
  CHECK(barrier.drop_missing(0, GiveUp::lost) == Ranks{0, 2});
  CHECK(barrier.drop_missing(0, GiveUp::none) == Ranks{1, 3});
  CHECK(wait_at(barrier, 2, -1)->step == 4);  // it comes back
  CHECK(barrier.drop_missing(0, GiveUp::none) == Ranks{1, 2, 3});
  CHECK_FALSE(held->is_told);
  CHECK_FALSE(after->is_told);
  barrier.abandon(Status::cancelled("the test is over"));
  CHECK(held->is_told);
}
