#include <dflow/ops/state/count.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

using namespace dflow;

TEST_CASE("A variable is counted up to its limit, and gives what it was before") {
  Graph graph;
  const Variable<std::int32_t> count(graph, 2, {.trainable = false});
  const Output<std::int32_t> next = count_up_to(count, 4);
  CHECK(next.shape() == PartialShape{});
  CHECK(next.node().colocated_with == count.handle().node_id());
  Session session(graph, {.num_threads = 1});
  CHECK(code_of([&] { return session.run(next); }) == Code::failed_precondition);
  session.run(initialize_variables(graph));
  CHECK(session.run(next).scalar() == 2);
  CHECK(session.run(count).scalar() == 3);
  CHECK(session.run(next).scalar() == 3);
  // TensorFlow 0.8, python/kernel_tests/variable_ops_test.py: "Reached limit of 3" leaves the variable at its limit.
  for (int again = 0; again < 2; ++again) {
    const Status status = status_of([&] { return session.run(next); });
    CHECK(status.code() == Code::out_of_range);
    CHECK(status.message() == "variable 'Variable' has reached its limit of 4");
    CHECK(status.op() == "CountUpTo");
  }
  CHECK(session.run(count).scalar() == 4);
  session.run(count.assign(10));
  CHECK(code_of([&] { return session.run(next); }) == Code::out_of_range);
}

TEST_CASE("A variable of 64 bits is counted to the end of its range") {
  Graph graph;
  constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
  const Variable<std::int64_t> count(graph, end - 1);
  const Output<std::int64_t> next = count_up_to(count, end);
  Session session(graph, {.num_threads = 1});
  session.run(initialize_variables(graph));
  CHECK(session.run(next).scalar() == end - 1);
  CHECK(code_of([&] { return session.run(next); }) == Code::out_of_range);

  const Variable<std::int32_t> small(graph, std::numeric_limits<std::int32_t>::max());
  const Output<std::int32_t> beyond = count_up_to(small, end);
  session.run(small.initializer());
  CHECK(code_of([&] { return session.run(beyond); }) == Code::out_of_range);
}

TEST_CASE("A variable without a value begins at 0 where that is asked for, and else goes on") {
  Graph graph;
  const Variable<std::int64_t> count(graph, std::int64_t{7});
  const Output<std::int64_t> next = count_up_to(count, 100, {.begins_at_zero = true});
  Session session(graph, {.num_threads = 1});
  CHECK(session.run(next).scalar() == 0);
  CHECK(session.run(next).scalar() == 1);
  session.run(count.initializer());
  CHECK(session.run(next).scalar() == 7);
}

TEST_CASE("Steps that count at once get a number each, from the first one on") {
  Graph graph;
  const Variable<std::int64_t> count(graph, std::int64_t{0});
  const Output<std::int64_t> next = count_up_to(count, 2000, {.begins_at_zero = true});
  Session session(graph, {.num_threads = 2});
  std::mutex mutex;
  std::vector<std::int64_t> numbers;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        std::vector<std::int64_t> mine;
        try {
          for (;;) mine.push_back(session.run(next).scalar());
        } catch (const Error&) {
        }
        const std::lock_guard lock(mutex);
        numbers.insert(numbers.end(), mine.begin(), mine.end());
      });
    }
  }
  std::sort(numbers.begin(), numbers.end());
  REQUIRE(numbers.size() == 2000);
  for (std::int64_t i = 0; i < 2000; ++i) CHECK(numbers[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("Only a scalar is counted") {
  Graph graph;
  const Variable<std::int32_t> pair(graph, Tensor<std::int32_t>({2}, {1, 2}));
  CHECK(contains(error_of([&] { return count_up_to(pair, 3); }), "count_test.cpp"));
  CHECK_THROWS_AS(count_up_to(Variable<std::int32_t>(), 3), Error);
  const Variable<std::int32_t> one(graph, 1);
  CHECK_THROWS_AS(build<CountUpTo>({one.handle()}, {.limit = 3}, {}, type_args<std::int64_t>()), Error);
}
