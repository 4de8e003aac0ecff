#include <dflow/ops/data_flow/queue.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/state/queue_state.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

std::shared_ptr<Device> queue_device() {
  return std::make_shared<CpuDevice>(
      CpuDeviceOptions{.pool = std::make_shared<WorkStealingPool>(2, ThreadPoolOptions{.name = "queue"})});
}

/// A queue of numbers, and the operations that a test runs on it.
struct Numbers {
  explicit Numbers(std::int64_t capacity = 0)
      : queue(graph, {.capacity = capacity, .shapes = {{}}, .name = "numbers"}) {}

  void put(int value) { session.run({{one, value}}, put_one); }
  void put_all(const std::vector<int>& values, const RunOptions& options = {}) {
    Tensor<int> tensor(Shape({static_cast<std::int64_t>(values.size())}));
    std::copy(values.begin(), values.end(), tensor.data());
    session.run(options, {{many, tensor}}, put_many);
  }
  int take() { return session.run(take_one).scalar(); }
  std::vector<int> take(int n, const RunOptions& options = {}) {
    const Tensor<int> taken = session.run(options, {{count, n}}, take_many);
    return {taken.begin(), taken.end()};
  }
  std::vector<int> take_up_to(int n) {
    const Tensor<int> taken = session.run({{count, n}}, take_rest);
    return {taken.begin(), taken.end()};
  }
  int size() { return session.run(queue.size()).scalar(); }

  Graph graph;
  FifoQueue<int> queue;
  Output<int> one = placeholder<int>(graph, Shape{}), many = placeholder<int>(graph, {dynamic});
  Output<int> count = placeholder<int>(graph, Shape{});
  Operation put_one = queue.enqueue(one), put_many = queue.enqueue_many(many);
  Output<int> take_one = queue.dequeue(), take_many = queue.dequeue_many(count), take_rest = queue.dequeue_up_to(count);
  Session session{graph, SessionOptions{.num_threads = 2}};
};

using Ints = std::vector<int>;

}  // namespace

TEST_CASE("A queue gives in order what was put in, one by one and many at once") {
  Numbers numbers;
  numbers.put(1);
  numbers.put_all({2, 3, 4, 5});
  numbers.put(6);
  CHECK(numbers.size() == 6);
  CHECK(numbers.take() == 1);
  CHECK(numbers.take() == 2);
  CHECK(numbers.take(3) == Ints{3, 4, 5});
  CHECK(numbers.take(0) == Ints{});
  CHECK(numbers.take(1) == Ints{6});
  CHECK(numbers.size() == 0);
  numbers.put_all({});
  CHECK(numbers.size() == 0);
}

TEST_CASE("Elements have components of several types, in tuples") {
  Graph graph;
  FifoQueue<float, std::string, bool> queue(graph, {.shapes = {{2}, {}, {}}});
  auto x = placeholder<float>(graph, {dynamic, 2});
  auto s = placeholder<std::string>(graph, {dynamic});
  auto b = placeholder<bool>(graph, {dynamic});
  const auto put = queue.enqueue_many(x, s, b);
  const auto [xs, ss, bs] = queue.dequeue_many(2);
  const auto [x1, s1, b1] = queue.dequeue();
  CHECK(xs.shape() == PartialShape({2, 2}));
  CHECK(x1.shape() == PartialShape({2}));
  CHECK(s1.shape() == PartialShape(Shape{}));
  Session session(graph);
  session.run({{x, Tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6})},
               {s, Tensor<std::string>({3}, {"a", "a string that is longer than its object", "c"})},
               {b, Tensor<bool>({3}, {true, false, true})}},
              put);
  const auto [a, t, u] = session.run(xs, ss, bs);
  CHECK(a(1, 1) == 4);
  CHECK(t(1) == "a string that is longer than its object");
  CHECK_FALSE(u(1));
  const auto [last, text, flag] = session.run(x1, s1, b1);
  CHECK(last(1) == 6);
  CHECK(text.scalar() == "c");
  CHECK(flag.scalar());
}

TEST_CASE("Who puts in waits for room, and who takes out for elements") {
  Numbers numbers(3);
  auto filling = std::async(std::launch::async, [&] {
    for (int i = 0; i < 40; ++i) numbers.put(i);
  });
  Ints taken;
  while (taken.size() < 20) taken.push_back(numbers.take());
  const Ints rest = numbers.take(20);  // more than the queue can hold
  taken.insert(taken.end(), rest.begin(), rest.end());
  filling.get();
  Ints wanted(40);
  std::iota(wanted.begin(), wanted.end(), 0);
  CHECK(taken == wanted);
  auto many = std::async(std::launch::async, [&] { numbers.put_all(wanted); });
  CHECK(numbers.take(40) == wanted);
  many.get();
}

TEST_CASE("Any number of steps wait without a thread of the pool") {
  Numbers numbers;
  std::vector<std::promise<int>> got(50);
  for (std::promise<int>& promise : got) {
    numbers.session.run_async({}, numbers.take_one, [&promise](const Status& status, const Tensor<int>& value) {
      promise.set_value(status.ok() ? value.scalar() : -1);
    });
  }
  Ints values(50);
  std::iota(values.begin(), values.end(), 100);
  numbers.put_all(values);
  Ints all;
  for (std::promise<int>& promise : got) all.push_back(promise.get_future().get());
  std::sort(all.begin(), all.end());
  CHECK(all == values);
}

TEST_CASE("What waits ends at its deadline or when it is stopped, and what it had taken is back in front") {
  Numbers numbers(2);
  numbers.put(1);
  CHECK(code_of([&] { numbers.take(2, {.deadline = std::chrono::milliseconds(20)}); }) == Code::deadline_exceeded);
  CHECK(numbers.size() == 1);
  std::stop_source stop;
  auto waiting =
      std::async(std::launch::async, [&] { return code_of([&] { numbers.take(3, {.stop = stop.get_token()}); }); });
  stop.request_stop();
  CHECK(waiting.get() == Code::cancelled);
  CHECK(numbers.take() == 1);
  CHECK(numbers.size() == 0);
  // The queue keeps the first elements, up to its capacity.
  QueueState queue("q", {.dtypes = {DType::int32}, .shapes = {}, .capacity = 2});
  CancellationSource source;
  std::optional<Status> ended;
  queue.enqueue_async({.components = {Tensor<int>({3}, {4, 5, 6})}, .end = 3}, source.token(),
                      [&](const Status& status) { ended = status; });
  CHECK_FALSE(ended);
  source.cancel(Status::cancelled("enough"));
  CHECK(ended->code() == Code::cancelled);
  CHECK(queue.size() == 2);
}

TEST_CASE("A closed queue gives what it has, lets nothing in, and says when it has too little") {
  Numbers numbers;
  numbers.put_all({1, 2, 3, 4, 5});
  CHECK_FALSE(numbers.session.run(numbers.queue.is_closed()).scalar());
  numbers.session.run(numbers.queue.close());
  CHECK(numbers.session.run(numbers.queue.is_closed()).scalar());
  CHECK(code_of([&] { numbers.put(6); }) == Code::cancelled);
  CHECK(numbers.take(2) == Ints{1, 2});
  CHECK_THROWS_WITH(numbers.take(4), Catch::Contains("closed and has only 3 elements"));
  CHECK(numbers.take_up_to(2) == Ints{3, 4});
  CHECK(numbers.take_up_to(2) == Ints{5});
  CHECK(code_of([&] { numbers.take_up_to(2); }) == Code::out_of_range);
  CHECK(code_of([&] { numbers.take(); }) == Code::out_of_range);
  CHECK_THROWS_WITH(numbers.take(), Catch::Contains("is closed and is empty"));
  CHECK(numbers.take(0) == Ints{});
  numbers.session.run(numbers.queue.close());
}

TEST_CASE("Closing ends who takes more than there is, and lets who puts in finish or not, as was asked") {
  for (const bool cancels : {false, true}) {
    QueueState queue("q", {.dtypes = {DType::int32}, .shapes = {}, .capacity = 1});
    std::vector<Status> put(2, Status::internal("not told"));
    std::optional<Status> taken;
    const auto put_in = [&](std::size_t who, std::initializer_list<int> values) {
      const auto rows = static_cast<std::int64_t>(values.size());
      queue.enqueue_async({.components = {Tensor<int>({rows}, values)}, .end = rows}, {},
                          [&put, who](const Status& status) { put[who] = status; });
    };
    put_in(0, {1, 2});
    queue.dequeue_async(7, false, {}, [&](const Status& status, const auto&) { taken = status; });
    put_in(1, {3, 4});
    CHECK(queue.size() == 0);
    CHECK_FALSE(taken);
    queue.close(cancels);
    CHECK(taken->code() == Code::out_of_range);
    CHECK(queue.size() == 4);  // back in front, beyond the capacity
    CHECK(put[0].ok());
    CHECK(put[1].ok());

    QueueState full("q", {.dtypes = {DType::int32}, .shapes = {}, .capacity = 1});
    std::optional<Status> waits;
    full.enqueue_async({.components = {Tensor<int>({3}, {1, 2, 3})}, .end = 3}, {},
                       [&](const Status& status) { waits = status; });
    full.close(cancels);
    CHECK(waits.has_value() == cancels);
    if (cancels) CHECK(waits->code() == Code::cancelled);
    std::int64_t num_taken = 0;
    full.dequeue_async(cancels ? 1 : 3, false, {}, [&](const Status& status, const std::vector<QueuedElements>& parts) {
      CHECK(status.ok());
      for (const QueuedElements& part : parts) num_taken += part.size();
    });
    CHECK(num_taken == (cancels ? 1 : 3));
    CHECK(waits->ok() != cancels);
  }
}

TEST_CASE("Queues of one shared name are one, over sessions on a device") {
  const auto device = queue_device();
  const auto build = [](Graph& graph) {
    return FifoQueue<float>(graph, {.capacity = 5, .shapes = {{}}, .shared_name = "both"});
  };
  Graph first_graph, second_graph, third_graph;
  const auto first = build(first_graph), second = build(second_graph);
  const FifoQueue<float> other(third_graph, {.capacity = 6, .shared_name = "both"});
  Session first_session(first_graph, {.devices = {device}}), second_session(second_graph, {.devices = {device}});
  Session third_session(third_graph, {.devices = {device}});
  const auto put = first.enqueue(constant(first_graph, 2.5f));
  for (int i = 0; i < 3; ++i) first_session.run(put);
  const auto take = second.dequeue();
  for (int i = 0; i < 3; ++i) CHECK(second_session.run(take).scalar() == 2.5f);
  CHECK_THROWS_WITH(third_session.run(other.size()),
                    Catch::Contains("keeps FIFOQueue 'both' (float[], capacity 5)") &&
                        Catch::Contains("wanted FIFOQueue 'both' (float, capacity 6)"));
}

TEST_CASE("A tensor that was fed may be written to after it was put in") {
  Graph graph;
  FifoQueue<float> queue(graph);
  auto x = placeholder<float>(graph, {2});
  const auto put = queue.enqueue(x);
  const auto take = queue.dequeue();
  Session session(graph);
  Tensor<float> mine({2}, {1, 2});
  session.run({{x, mine}}, put);
  mine(0) = 9;
  Tensor<float> taken = session.run(take);
  CHECK(taken(0) == 1);
  taken(1) = 7;
  session.run({{x, mine}}, put);
  CHECK(session.run(take)(1) == 2);
}

TEST_CASE("Elements without known shapes are taken together where their shapes agree") {
  Graph graph;
  FifoQueue<int> queue(graph);
  auto x = placeholder<int>(graph, PartialShape::unknown());
  const auto put = queue.enqueue(x);
  const auto many = queue.dequeue_many(2);
  const auto one = queue.dequeue();
  Session session(graph);
  session.run({{x, Tensor<int>({2}, {1, 2})}}, put);
  session.run({{x, Tensor<int>({2}, {3, 4})}}, put);
  CHECK(session.run(many)(1, 0) == 3);
  session.run({{x, Tensor<int>({2}, {1, 2})}}, put);
  session.run({{x, Tensor<int>({3}, {3, 4, 5})}}, put);
  CHECK_THROWS_WITH(session.run(many), Catch::Contains("[2]") && Catch::Contains("[3]"));
  session.run({{x, Tensor<int>(8)}}, put);
  CHECK(session.run(one)(1) == 2);  // nothing is lost
  CHECK(session.run(one)(2) == 5);
  CHECK(session.run(one).scalar() == 8);
}

TEST_CASE("Elements of a shuffling queue whose shapes differ stay in it where they were to be taken together") {
  Graph graph;
  RandomShuffleQueue<int> queue(graph, {.seed = 3});
  auto x = placeholder<int>(graph, PartialShape::unknown());
  const auto put = queue.enqueue(x);
  const auto many = queue.dequeue_up_to(3);
  const auto one = queue.dequeue();
  Session session(graph);
  for (int i = 1; i <= 3; ++i) session.run({{x, Tensor<int>(Shape{i})}}, put);
  CHECK(code_of([&] { session.run(many); }) == Code::invalid_argument);
  session.run(queue.close());
  CHECK(code_of([&] { session.run(many); }) == Code::invalid_argument);
  std::int64_t total = 0;
  for (int i = 1; i <= 3; ++i) total += session.run(one).dim(0);
  CHECK(total == 6);
  CHECK(code_of([&] { session.run(many); }) == Code::out_of_range);
}

TEST_CASE("What a step has no memory for, or cannot put into one tensor, stays in its queue") {
  Graph graph;
  FifoQueue<std::int64_t> queue(graph);
  auto x = placeholder<std::int64_t>(graph, PartialShape::unknown());
  auto n = placeholder<int>(graph, Shape{});
  const auto put = queue.enqueue(x);
  const auto many = queue.dequeue_many(n);
  const auto one = queue.dequeue();
  Session session(graph, SessionOptions{.num_threads = 1, .memory_limit_bytes = 1 << 20});
  for (std::int64_t i = 0; i < 6; ++i) session.run({{x, Tensor<std::int64_t>::full({1 << 14}, i)}}, put);
  CHECK(code_of([&] { session.run({{n, 6}}, many); }) == Code::resource_exhausted);
  CHECK(session.run(queue.size()).scalar() == 6);
  CHECK(session.run({{n, 1}}, many)(0, 7) == 0);
  for (std::int64_t i = 1; i < 6; ++i) CHECK(session.run(one)(3) == i);

  const std::vector<DType> lists{DType::variant};
  const AnyOutput handle = build<FIFOQueue>(*graph.store(), {}, {.component_types = lists}).output(0);
  const AnyOutput list = build<TensorListFromTensor>({constant(graph, Tensor<int>({2}, {1, 2}))}).output(0);
  const Operation put_list = build<QueueEnqueue>({handle, list}, {.Tcomponents = lists}).operation();
  const AnyOutput taken = build<QueueDequeue>({handle}, {.component_types = lists}).output(0);
  const AnyOutput of_lists =
      build<QueueDequeueMany>({handle, constant(graph, 1)}, {.component_types = lists}).output(0);
  session.run(put_list);
  CHECK(code_of([&] { session.run(of_lists.operation()); }) == Code::invalid_argument);
  const auto length = Output<std::int32_t>::unchecked(build<TensorListLength>({taken}).output(0));
  CHECK(session.run(RunOptions{.deadline = std::chrono::seconds(30)}, {}, length).scalar() == 2);
}

TEST_CASE("Wrong components are refused when they are built, or when they come") {
  Graph graph;
  FifoQueue<float> queue(graph, {.shapes = {{2}}});
  CHECK(code_of([&] {
          static_cast<void>(queue.enqueue(constant(graph, Tensor<float>({3}, {1, 2, 3}))));
        }) == Code::invalid_argument);
  CHECK(code_of([&] { static_cast<void>(queue.enqueue_many(constant(graph, 1.0f))); }) == Code::invalid_argument);
  CHECK(code_of([&] { static_cast<void>(queue.dequeue_many(-1)); }) == Code::invalid_argument);
  CHECK(code_of([&] { FifoQueue<float>(graph, {.shapes = {{2}, {3}}}); }) == Code::invalid_argument);
  CHECK(code_of([&] { build<QueueEnqueueMany>({queue.handle()}, {}); }) == Code::invalid_argument);
  auto x = placeholder<float>(graph, PartialShape::unknown());
  const auto put = queue.enqueue(x);
  auto n = placeholder<std::int32_t>(graph, Shape{});
  const auto many = queue.dequeue_many(n);
  Session session(graph);
  CHECK(code_of([&] { session.run({{x, Tensor<float>({3}, {1, 2, 3})}}, put); }) == Code::invalid_argument);
  CHECK(code_of([&] { session.run({{n, -1}}, many); }) == Code::invalid_argument);
  CHECK(session.run({{n, 0}}, many).shape() == Shape({0, 2}));
  CHECK(session.run(queue.size()).scalar() == 0);
}

TEST_CASE("Many threads put in and take out: nothing is lost, nothing comes twice, each one's order stays") {
  Numbers numbers(7);
  constexpr int per_thread = 200;
  std::vector<Ints> taken(3);
  {
    std::vector<std::jthread> threads;
    for (int who = 0; who < 3; ++who) {
      threads.emplace_back([&, who] {
        for (int i = 0; i < per_thread; i += 4) {
          const int first = who * per_thread + i;
          numbers.put(first);
          numbers.put_all({first + 1, first + 2, first + 3});
        }
      });
      threads.emplace_back([&, who] {
        Ints& mine = taken[static_cast<std::size_t>(who)];
        while (mine.size() < per_thread) {
          const Ints some = numbers.take(5);
          mine.insert(mine.end(), some.begin(), some.end());
        }
      });
    }
  }
  Ints all;
  for (const Ints& mine : taken) {
    std::vector<int> last(3, -1);
    for (const int value : mine) {
      int& before = last[static_cast<std::size_t>(value / per_thread)];
      CHECK(value > before);
      before = value;
    }
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  Ints wanted(3 * per_thread);
  std::iota(wanted.begin(), wanted.end(), 0);
  CHECK(all == wanted);
}
