// Every allocation of a resource with waiting calls fails in turn: no call waits for ever, and none is told twice.
#include <dflow/state/accumulator_state.hpp>
#include <dflow/state/barrier_state.hpp>
#include <dflow/state/queue_state.hpp>
#include <dflow/state/token_barrier_state.hpp>

#include "catch.hpp"
#include "support/failing_new.hpp"

#include <dflow/base/threads/completion.hpp>
#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using namespace dflow;
using failing_new::fail_each;

namespace {

/// The calls that were made, and the calls that have been told how they ended.
struct Waits {
  int num_told = 0;

  Completion next() {
    return [this](const Status&) { ++num_told; };
  }
};

}  // namespace

TEST_CASE("Without memory a queue lets nobody wait for ever") {
  const QueueKind queue_kind = GENERATE(QueueKind::fifo, QueueKind::random_shuffle, QueueKind::priority);
  const QueueState::Kind kind{.dtypes = {DType::int64}, .shapes = {}, .capacity = 2, .kind = queue_kind};
  const auto element = [] {
    QueuedElements one;
    one.components.emplace_back(Tensor<std::int64_t>(1));
    one.is_single = true;
    return one;
  };
  CHECK(fail_each([&] {
          Waits waits;
          int num_started = 0;
          const auto start = [&](const auto& call) {
            Completion told = waits.next();
            ++num_started;
            call(std::move(told));
          };
          {
            CancellationSource source;
            QueueState queue("q", kind);
            const auto put = [&] {
              start([&](Completion told) {
                queue.enqueue_async(element(), source.token(),
                                    [told = std::move(told)](Status status) mutable { told(std::move(status)); });
              });
            };
            const auto take = [&](std::int64_t count) {
              start([&](Completion told) {
                queue.dequeue_async(
                    count, false, source.token(),
                    [told = std::move(told)](Status status, const std::vector<QueuedElements>&) mutable {
                      told(std::move(status));
                    });
              });
            };
            try {
              take(2);
              for (int i = 0; i < 5; ++i) put();
              take(1);
              take(9);
              queue.close(true);
            } catch (...) {
              source.cancel();
              REQUIRE(waits.num_told == num_started);
              throw;
            }
            source.cancel();
          }
          REQUIRE(waits.num_told == num_started);
        }) > 20);
}

TEST_CASE("An element that there was no memory to put into a queue is not in it, and who gave it is told why") {
  const QueueKind queue_kind = GENERATE(QueueKind::fifo, QueueKind::random_shuffle, QueueKind::priority);
  const QueueState::Kind kind{.dtypes = {DType::int64}, .shapes = {}, .capacity = 8, .kind = queue_kind};
  CHECK(fail_each([&] {
          QueueState queue("q", kind);
          for (std::int64_t num_in = 0; num_in < 3; ++num_in) {
            QueuedElements one;
            one.components.emplace_back(Tensor<std::int64_t>(1));
            one.is_single = true;
            Code told = Code::unknown;
            try {
              queue.enqueue_async(std::move(one), {}, [&told](const Status& status) { told = status.code(); });
            } catch (const std::bad_alloc&) {
              REQUIRE(queue.size() == num_in);
              throw;
            }
            if (told != Code::ok) {
              REQUIRE(told == Code::resource_exhausted);
              REQUIRE(queue.size() == num_in);
              throw std::bad_alloc();
            }
            REQUIRE(queue.size() == num_in + 1);
          }
        }) > 3);
}

TEST_CASE("Without memory a queue is there until the call returns whose caller lets go of it when told") {
  const QueueState::Kind kind{.dtypes = {DType::float32}, .shapes = {}, .capacity = 2};
  const std::vector<float> zero(1);
  CHECK(fail_each([&] {
          bool is_gone = false, is_told = false, was_gone = false;
          auto queue = std::make_shared<QueueState>("q", kind);
          QueueState& held = *queue;
          const std::weak_ptr<QueueState> left = queue;
          QueuedElements one;
          one.is_single = true;
          one.components.emplace_back(borrow(zero, {}, [&] { is_gone = true; }));
          held.enqueue_async(std::move(one), {}, [](const Status&) {});
          held.dequeue_async(
              2, false, {},
              [&, queue = std::move(queue)](const Status& status, const std::vector<QueuedElements>&) mutable {
                if (status.code() != Code::resource_exhausted) return;
                is_told = true;
                queue = nullptr;
                was_gone = is_gone;
              });
          REQUIRE_FALSE(was_gone);
          const auto end = [&] {
            if (const std::shared_ptr<QueueState> waits = left.lock()) waits->abandon(Status::cancelled("no more"));
          };
          try {
            end();
          } catch (...) {
            end();
            throw;
          }
          if (is_told) {
            REQUIRE(is_gone);
            throw std::bad_alloc();
          }
        }) > 3);
}

TEST_CASE("Without memory a barrier of elements lets nobody wait for ever, and inserts all of a call or nothing") {
  const std::vector<std::string> keys{"a key of more than a few letters", "b", "c"};
  CHECK(fail_each([&] {
          Waits waits;
          int num_started = 0;
          CancellationSource source;
          BarrierState barrier("b", {.dtypes = {DType::float32, DType::float32}, .shapes = {}});
          const auto take = [&](std::int64_t count) {
            Completion told = waits.next();
            ++num_started;
            barrier.take_async(
                {.count = count}, source.token(),
                [told = std::move(told)](Status status, const std::vector<BarrierState::Element>&) mutable {
                  told(std::move(status));
                });
          };
          const auto insert = [&](std::int64_t component) {
            const std::int64_t before = barrier.incomplete_size() + barrier.ready_size();
            try {
              barrier.insert_many(component, keys, Tensor<float>::full({3}, 1));
            } catch (...) {
              REQUIRE(barrier.incomplete_size() + barrier.ready_size() == before);
              throw;
            }
          };
          try {
            take(2);
            insert(0);
            insert(1);
            take(1);
            take(9);
            barrier.close(true);
          } catch (...) {
            source.cancel();
            REQUIRE(waits.num_told == num_started);
            throw;
          }
          source.cancel();
          REQUIRE(waits.num_told == num_started);
        }) > 20);
}

TEST_CASE("Without memory an accumulator and a barrier let nobody wait for ever") {
  CHECK(fail_each([&] {
          Waits waits;
          int num_started = 0;
          CancellationSource source;
          AccumulatorState gathered("a", DType::float32, Shape{}, {});
          TokenBarrierState barrier("b", 2, 2);
          const auto take = [&](std::int64_t count) {
            Completion told = waits.next();
            ++num_started;
            gathered.take_async(
                count, source.token(),
                [told = std::move(told)](Status status, const TakenGradients&) mutable { told(std::move(status)); });
          };
          const auto give = [&](std::int64_t rank) {
            gathered.apply({rank, 9, {}, Tensor<float>::full({}, 1)},
                           [](std::vector<AccumulatedGradient>&, std::int64_t&) {});
          };
          const auto wait = [&](std::int64_t rank, std::int64_t step) {
            Completion told = waits.next();
            ++num_started;
            barrier.wait_async(
                rank, step, source.token(),
                [told = std::move(told)](Status status, std::int64_t) mutable { told(std::move(status)); });
          };
          const auto collect = [&] {
            Completion told = waits.next();
            ++num_started;
            barrier.collect_async(0, source.token(),
                                  [told = std::move(told)](Status status, const TokenBarrierState::Collected&) mutable {
                                    told(std::move(status));
                                  });
          };
          const auto leave = [&](std::int64_t rank) {
            Completion told = waits.next();
            ++num_started;
            barrier.leave_async(rank, source.token(), std::move(told));
          };
          try {
            take(2);
            take(1);
            for (const std::int64_t rank : {0, -1, -1, 1}) give(rank);
            take(3);
            wait(0, -1);
            barrier.open(0);
            collect();
            barrier.arrive(0, 0);
            wait(0, 0);
            barrier.arrive(1, 0);
            wait(1, 0);
            barrier.advance(1);
            collect();
            collect();
            wait(0, 1);
            wait(1, -1);
            leave(0);
            collect();
            barrier.close(TokenBarrierState::Close::late);
            wait(1, -1);
          } catch (...) {
            source.cancel();
            REQUIRE(waits.num_told == num_started);
            throw;
          }
          source.cancel();
          REQUIRE(waits.num_told == num_started);
        }) > 20);
}
