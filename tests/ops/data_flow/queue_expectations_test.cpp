// The expectations that TensorFlow's tests publish for queues: python/kernel_tests/fifo_queue_test.py,
// padding_fifo_queue_test.py and random_shuffle_queue_test.py, version 0.8. The names in comments are from there.
// queue_test.cpp and queue_kinds_test.cpp have the other expectations: order, blocking, closing, shared names,
// padding, shuffling.
#include <dflow/ops/data_flow/queue_kinds.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <numeric>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// Calls `check(make, name)` for each kind of queue; `make` is called with a graph, a capacity and a shape.
template <class T, class Check>
void for_each_queue_kind(Check check) {
  check([](Graph& graph, std::int64_t capacity,
           const PartialShape& shape) { return FifoQueue<T>(graph, {.capacity = capacity, .shapes = {shape}}); },
        "FIFO");
  check([](Graph& graph, std::int64_t capacity,
           const PartialShape& shape) { return PaddingFifoQueue<T>(graph, {.capacity = capacity, .shapes = {shape}}); },
        "padding");
  check(
      [](Graph& graph, std::int64_t capacity, const PartialShape& shape) {
        return RandomShuffleQueue<T>(graph, {.capacity = capacity, .shapes = {shape}, .seed = 1729});
      },
      "shuffling");
}

std::vector<int> sorted_ints(const Tensor<int>& tensor) {
  std::vector<int> values(tensor.begin(), tensor.end());
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<int> counted_from_zero(int n) {
  std::vector<int> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

Tensor<int> ints(const std::vector<int>& of) { return Tensor<int>({static_cast<std::int64_t>(of.size())}, of); }

}  // namespace

// Dtypes, HighDimension
TEST_CASE("Queues of each kind hold elements of every type, and of many dimensions") {
  for_each_type<AllTypes>([]<class T>() {
    for_each_queue_kind<T>([](const auto& make, const char* kind) {
      INFO(kind << " of " << dtype_name(dtype_of<T>));
      Graph graph;
      const auto queue = make(graph, 10, PartialShape({2, 1, 2, 1}));
      const auto x = placeholder<T>(graph, {dynamic, 2, 1, 2, 1});
      const auto put = queue.enqueue_many(x);
      const auto taken = queue.dequeue_many(3);
      Session session(graph, SessionOptions{.num_threads = 1});
      Tensor<T> same({3, 2, 1, 2, 1});
      for (T& element : same) {
        if constexpr (std::is_same_v<T, std::string>) {
          element = std::string(40, 'x');
        } else {
          element = static_cast<T>(static_cast<float>(1));
        }
      }
      session.run({{x, same}}, put);
      CHECK(bitwise_equal(session.run(taken), same));
    });
  });
}

// BigEnqueueMany, BigDequeueMany
TEST_CASE("More than a queue of any kind has room for is put in and taken out by calls that wait for each other") {
  for_each_queue_kind<int>([](const auto& make, const char* kind) {
    INFO(kind);
    Graph graph;
    const auto queue = make(graph, 5, Shape{});
    const auto x = placeholder<int>(graph, {dynamic});
    const auto one = placeholder<int>(graph, Shape{});
    const auto put_all = queue.enqueue_many(x);
    const auto put_one = queue.enqueue(one);
    const auto take_one = queue.dequeue(), take_all = queue.dequeue_many(10);
    Session session(graph, SessionOptions{.num_threads = 2});
    auto putting = std::async(std::launch::async, [&] { session.run({{x, ints(counted_from_zero(10))}}, put_all); });
    Tensor<int> taken(Shape{10});
    for (int i = 0; i < 10; ++i) taken(i) = session.run(take_one).scalar();
    putting.get();
    CHECK(sorted_ints(taken) == counted_from_zero(10));
    auto taking = std::async(std::launch::async, [&] { return session.run(take_all); });
    for (int i = 0; i < 10; ++i) session.run({{one, i}}, put_one);
    CHECK(sorted_ints(taking.get()) == counted_from_zero(10));
  });
}

// ClosedBlockingDequeueManyRestoresPartialBatch
TEST_CASE("What a call had taken when its queue was closed is back in order, with all components") {
  Graph graph;
  const FifoQueue<int, std::string> queue(graph, {.capacity = 4, .shapes = {{}, {}}});
  const auto a = placeholder<int>(graph, {dynamic});
  const auto b = placeholder<std::string>(graph, {dynamic});
  const auto put = queue.enqueue_many(a, b);
  const auto four = std::get<0>(queue.dequeue_many(4));
  const auto [one_a, one_b] = queue.dequeue();
  Session session(graph, SessionOptions{.num_threads = 2});
  session.run({{a, ints({1, 2, 3})}, {b, Tensor<std::string>({3}, {"10", "11", "12"})}}, put);
  auto waits = std::async(std::launch::async, [&] { return code_of([&] { session.run(four); }); });
  while (session.run(queue.size()).scalar() > 0) std::this_thread::yield();  // it has them
  session.run(queue.close());
  CHECK(waits.get() == Code::out_of_range);
  for (int i = 0; i < 3; ++i) {
    const auto [number, text] = session.run(one_a, one_b);
    CHECK(number.scalar() == 1 + i);
    CHECK(text.scalar() == std::to_string(10 + i));
  }
  CHECK(code_of([&] { session.run(one_a, one_b); }) == Code::out_of_range);
}

// DequeueWithTimeout, ReusableAfterTimeout
TEST_CASE("A queue of any kind works on after calls that met their deadline") {
  for_each_queue_kind<int>([](const auto& make, const char* kind) {
    INFO(kind);
    Graph graph;
    const auto queue = make(graph, 2, Shape{});
    const auto x = placeholder<int>(graph, {dynamic});
    const auto put = queue.enqueue_many(x);
    const auto take = queue.dequeue(), take_all = queue.dequeue_many(3);
    Session session(graph, SessionOptions{.num_threads = 1});
    const RunOptions soon{.deadline = std::chrono::milliseconds(10)};
    CHECK(code_of([&] { session.run(soon, {}, take); }) == Code::deadline_exceeded);
    session.run({{x, ints({37})}}, put);
    CHECK(code_of([&] { session.run(soon, {}, take_all); }) == Code::deadline_exceeded);
    CHECK(session.run(take).scalar() == 37);
    session.run({{x, ints({1, 2})}}, put);
    CHECK(code_of([&] { session.run(soon, {{x, ints({3})}}, put); }) == Code::deadline_exceeded);
    CHECK(session.run(take).scalar() + session.run(take).scalar() == 3);
    CHECK(session.run(queue.size()).scalar() == 0);
  });
}

// ResetOfBlockingOperation
TEST_CASE("All that wait at queues of any kind end when they are stopped") {
  for_each_queue_kind<int>([](const auto& make, const char* kind) {
    INFO(kind);
    Graph graph;
    const auto empty = make(graph, 5, Shape{}), full = make(graph, 5, Shape{});
    const auto x = placeholder<int>(graph, {dynamic});
    const auto one = placeholder<int>(graph, Shape{});
    const auto fill = full.enqueue_many(x);
    const auto put = full.enqueue(one);
    const auto take = empty.dequeue(), take_many = empty.dequeue_many(2), take_rest = empty.dequeue_up_to(2);
    Session session(graph, SessionOptions{.num_threads = 1});
    session.run({{x, ints(counted_from_zero(5))}}, fill);
    std::stop_source stop;
    const RunOptions until{.stop = stop.get_token()};
    std::vector<std::promise<Code>> ended(5);
    const auto end = [&](std::size_t who) {
      return [&ended, who](const Status& status, const auto&...) { ended[who].set_value(status.code()); };
    };
    session.run_async(until, {}, take, end(0));
    session.run_async(until, {}, take_many, end(1));
    session.run_async(until, {}, take_rest, end(2));
    session.run_async(until, {{one, 1}}, put, end(3));
    session.run_async(until, {{x, ints({1, 2})}}, fill, end(4));
    stop.request_stop();
    for (std::promise<Code>& each : ended) CHECK(each.get_future().get() == Code::cancelled);
    CHECK(session.run(empty.size()).scalar() == 0);
    CHECK(session.run(full.size()).scalar() == 5);
  });
}

// DequeueEnqueueFail
TEST_CASE("What waits for an element that does not come puts nothing in") {
  for_each_queue_kind<int>([](const auto& make, const char* kind) {
    INFO(kind);
    Graph graph;
    const auto source = make(graph, 5, Shape{}), target = make(graph, 5, Shape{});
    const auto moved = target.enqueue(source.dequeue() + 1);
    Session session(graph, SessionOptions{.num_threads = 1});
    session.run(source.close());
    CHECK(code_of([&] { session.run(moved); }) == Code::out_of_range);
    CHECK(session.run(target.size()).scalar() == 0);
  });
}

// SharedQueueSameSession
TEST_CASE("Two queues of one shared name are one in a session, of any kind") {
  Graph graph;
  const auto check = [&](const auto& first, const auto& second) {
    Session session(graph, SessionOptions{.num_threads = 1});
    session.run(first.enqueue(constant(graph, 10)));
    CHECK(session.run(second.size()).scalar() == 1);
    CHECK(session.run(second.dequeue()).scalar() == 10);
    session.run(second.enqueue(constant(graph, 20)));
    CHECK(session.run(first.dequeue()).scalar() == 20);
    CHECK(session.run(second.size()).scalar() == 0);
  };
  const QueueOptions fifo{.shapes = {{}}, .shared_name = "fifo"}, padding{.shapes = {{}}, .shared_name = "padding"};
  const RandomShuffleQueueOptions shuffling{.shapes = {{}}, .seed = 5, .shared_name = "shuffling"};
  check(FifoQueue<int>(graph, fifo), FifoQueue<int>(graph, fifo));
  check(PaddingFifoQueue<int>(graph, padding), PaddingFifoQueue<int>(graph, padding));
  check(RandomShuffleQueue<int>(graph, shuffling), RandomShuffleQueue<int>(graph, shuffling));
}

// DequeueUpToNoBlocking, BlockingDequeueUpTo, DequeueUpToFromClosedQueueReturnsRemainder
TEST_CASE("A shuffling queue that is open gives as many as are asked for, and keeps enough, else what is left") {
  Graph graph;
  const RandomShuffleQueue<int> queue(graph, {.capacity = 10, .min_after_dequeue = 4, .shapes = {{}}, .seed = 3});
  const auto x = placeholder<int>(graph, {dynamic});
  const auto n = placeholder<int>(graph, Shape{});
  const auto put = queue.enqueue_many(x);
  const auto some = queue.dequeue_up_to(n);
  Session session(graph, SessionOptions{.num_threads = 2});
  session.run({{x, ints(counted_from_zero(7))}}, put);
  std::vector<int> all = sorted_ints(session.run({{n, 3}}, some));
  CHECK(all.size() == 3);
  const RunOptions soon{.deadline = std::chrono::milliseconds(10)};
  CHECK(code_of([&] { session.run(soon, {{n, 1}}, some); }) == Code::deadline_exceeded);
  CHECK(session.run(queue.size()).scalar() == 4);
  auto waits = std::async(std::launch::async, [&] { return sorted_ints(session.run({{n, 3}}, some)); });
  session.run(queue.close());
  const std::vector<int> three = waits.get(), rest = sorted_ints(session.run({{n, 3}}, some));
  CHECK(three.size() == 3);
  CHECK(rest.size() == 1);
  all.insert(all.end(), three.begin(), three.end());
  all.insert(all.end(), rest.begin(), rest.end());
  std::sort(all.begin(), all.end());
  CHECK(all == counted_from_zero(7));
  CHECK(code_of([&] { session.run({{n, 3}}, some); }) == Code::out_of_range);
}
