#include <dflow/ops/data_flow/queue_kinds.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/vectors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/state/queue_state.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <numeric>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;
using dflow::testing::vector_of;

namespace {

using Ints = std::vector<int>;

Ints ints_of(const Tensor<int>& tensor) { return {tensor.begin(), tensor.end()}; }

Ints first_ints(int n) {
  Ints values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

Session session_with_files(const Graph& graph, const std::shared_ptr<FileSystem>& files) {
  const auto devices = cpu_devices(1, {.pool = std::make_shared<InlinePool>()});
  for (const auto& device : devices) set_device_files(device->context(), files);
  return Session(graph, {.devices = devices});
}

/// A queue of numbers that shuffles, and the operations that a test runs on it.
struct Shuffled {
  explicit Shuffled(const RandomShuffleQueueOptions& options, int num_threads = 2)
      : queue(graph, options), session(graph, SessionOptions{.num_threads = num_threads}) {}

  void put_all(const Ints& values) { session.run({{many, vector_of(values)}}, put_many); }
  Ints take(int n, const RunOptions& options = {}) { return ints_of(session.run(options, {{count, n}}, take_many)); }
  int size() { return session.run(queue.size()).scalar(); }

  Graph graph;
  RandomShuffleQueue<int> queue;
  Output<int> many = placeholder<int>(graph, {dynamic}), count = placeholder<int>(graph, Shape{});
  Operation put_many = queue.enqueue_many(many);
  Output<int> take_one = queue.dequeue(), take_many = queue.dequeue_many(count);
  Session session;
};

/// A queue of words by priority.
struct Jobs {
  Jobs() { std::tie(least, taken) = queue.dequeue_many(count); }

  void put(const std::vector<std::int64_t>& priorities, const std::vector<std::string>& names) {
    session.run({{priority, vector_of(priorities)}, {name, vector_of(names)}}, put_many);
  }
  std::string take(int n, const RunOptions& options = {}) {
    const auto [priorities, names] = session.run(options, {{count, n}}, least, taken);
    std::string text;
    for (int i = 0; i < n; ++i) text += std::to_string(priorities(i)) + names(i) + " ";
    return text;
  }

  Graph graph;
  PriorityQueue<std::string> queue{graph, {.shapes = {{}}, .name = "jobs"}};
  Output<std::int64_t> priority = placeholder<std::int64_t>(graph, {dynamic}), least;
  Output<std::string> name = placeholder<std::string>(graph, {dynamic}), taken;
  Output<int> count = placeholder<int>(graph, Shape{});
  Operation put_many = queue.enqueue_many(priority, name);
  Session session{graph, SessionOptions{.num_threads = 1}};
};

}  // namespace

TEST_CASE("A shuffling queue gives each element once, in another order, and in the same one for the same seed") {
  const auto order = [](std::uint64_t seed, bool one_by_one) {
    Shuffled numbers({.shapes = {{}}, .seed = seed});
    numbers.put_all(first_ints(50));
    if (!one_by_one) return numbers.take(50);
    Ints taken;
    for (int i = 0; i < 50; ++i) taken.push_back(numbers.session.run(numbers.take_one).scalar());
    return taken;
  };
  const Ints taken = order(7, false);
  CHECK(std::set<int>(taken.begin(), taken.end()).size() == 50);
  CHECK(taken != first_ints(50));
  CHECK(order(7, true) == taken);
  CHECK(order(8, true) != taken);
  CHECK(order(0, true) != order(0, true));
}

TEST_CASE("Each element of a shuffling queue has the same chance to be next") {
  Shuffled numbers({.shapes = {{}}, .seed = 3});
  std::array<int, 5> first{};
  for (int i = 0; i < 1000; ++i) {
    numbers.put_all(first_ints(5));
    ++first[static_cast<std::size_t>(numbers.take(5)[0])];
  }
  for (const int times : first) {  // 200 are expected, with a standard deviation of 13
    CHECK(times > 140);
    CHECK(times < 260);
  }
}

TEST_CASE("A shuffling queue keeps enough to choose from until it is closed") {
  Shuffled numbers({.capacity = 20, .min_after_dequeue = 5, .shapes = {{}}, .seed = 1});
  numbers.put_all(first_ints(8));
  numbers.take(3);
  CHECK(numbers.size() == 5);
  const RunOptions soon{.deadline = std::chrono::milliseconds(10)};
  CHECK(code_of([&] { numbers.take(1, soon); }) == Code::deadline_exceeded);
  numbers.put_all({10, 11});
  CHECK(code_of([&] { numbers.take(3, soon); }) == Code::deadline_exceeded);
  CHECK(numbers.size() == 7);
  auto waits = std::async(std::launch::async, [&] { return numbers.take(7); });
  numbers.session.run(numbers.queue.close());
  Ints all = waits.get();
  std::sort(all.begin(), all.end());
  CHECK(std::unique(all.begin(), all.end()) == all.end());
  CHECK(std::count(all.begin(), all.end(), 10) == 1);
  CHECK(std::count(all.begin(), all.end(), 11) == 1);
  CHECK(code_of([&] { numbers.take(1); }) == Code::out_of_range);
}

TEST_CASE("A run with a shuffling queue that was saved goes on in the order in which the undisturbed one does") {
  const auto files = std::make_shared<MemoryFileSystem>();
  const auto begin = [&](Shuffled& numbers, Session& session) {
    session.run({{numbers.many, vector_of(first_ints(30))}}, numbers.put_many);
    return ints_of(session.run({{numbers.count, 7}}, numbers.take_many));
  };
  const auto end = [&](Shuffled& numbers, Session& session) {
    session.run({{numbers.many, vector_of(Ints{100, 101})}}, numbers.put_many);
    return ints_of(session.run({{numbers.count, 20}}, numbers.take_many));
  };
  for (const std::uint64_t seed : {std::uint64_t{5}, std::uint64_t{0}}) {
    const RandomShuffleQueueOptions options{.min_after_dequeue = 3, .shapes = {{}}, .seed = seed, .name = "examples"};
    Shuffled whole(options), again(options);
    Session one = session_with_files(whole.graph, files), other = session_with_files(again.graph, files);
    begin(whole, one);
    train::Saver saver(whole.graph, {.files = files}), restorer(again.graph, {.files = files});
    saver.save(one, "/m/q");
    begin(again, other);
    restorer.restore(other, "/m/q");
    CHECK(end(again, other) == end(whole, one));
  }
}

TEST_CASE("What is taken together from a padding queue has the size of the largest") {
  Graph graph;
  PaddingFifoQueue<int, std::string, float> queue(graph, {.shapes = {{dynamic, dynamic}, {dynamic}, {2}}});
  const auto rows = placeholder<int>(graph, {dynamic, dynamic});
  const auto words = placeholder<std::string>(graph, {dynamic});
  const auto fixed = placeholder<float>(graph, {2});
  const auto put = queue.enqueue(rows, words, fixed);
  const auto [many_rows, many_words, many_fixed] = queue.dequeue_many(2);
  CHECK(many_rows.shape() == PartialShape({2, dynamic, dynamic}));
  CHECK(many_fixed.shape() == PartialShape({2, 2}));
  const auto [one_rows, one_words, one_fixed] = queue.dequeue();
  Session session(graph);
  const auto fill = [&](const Tensor<int>& a, const Tensor<std::string>& b) {
    session.run({{rows, a}, {words, b}, {fixed, Tensor<float>({2}, {1, 2})}}, put);
  };
  fill(Tensor<int>({2, 1}, {1, 2}), Tensor<std::string>({1}, {"x"}));
  fill(Tensor<int>({1, 3}, {3, 4, 5}), Tensor<std::string>(Shape{0}));
  const auto [a, b, c] = session.run(many_rows, many_words, many_fixed);
  CHECK(bitwise_equal(a, Tensor<int>({2, 2, 3}, {1, 0, 0, 2, 0, 0, 3, 4, 5, 0, 0, 0})));
  CHECK(bitwise_equal(b, Tensor<std::string>({2, 1}, {"x", ""})));
  CHECK(c(1, 1) == 2);
  fill(Tensor<int>({2, 1}, {1, 2}), Tensor<std::string>({1}, {"x"}));
  CHECK(session.run(one_rows).shape() == Shape({2, 1}));  // as it was put in
}

TEST_CASE("A padding queue takes rows of one call together with others, and gives none in the shape of nothing") {
  Graph graph;
  PaddingFifoQueue<int> queue(graph, {.shapes = {{dynamic}}});
  const auto rows = placeholder<int>(graph, {dynamic, dynamic});
  const auto put = queue.enqueue_many(rows);
  const auto n = placeholder<int>(graph, Shape{});
  const auto take = queue.dequeue_many(n), rest = queue.dequeue_up_to(n);
  Session session(graph);
  CHECK(session.run({{n, 0}}, take).shape() == Shape({0, 0}));
  session.run({{rows, Tensor<int>({2, 2}, {1, 2, 3, 4})}}, put);
  session.run({{rows, Tensor<int>({2, 3}, {5, 6, 7, 8, 9, 10})}}, put);
  CHECK(bitwise_equal(session.run({{n, 3}}, take), Tensor<int>({3, 3}, {1, 2, 0, 3, 4, 0, 5, 6, 7})));
  session.run(queue.close());
  CHECK(bitwise_equal(session.run({{n, 3}}, rest), Tensor<int>({1, 3}, {8, 9, 10})));
}

TEST_CASE("A priority queue gives the least priority first, and of equal ones the oldest") {
  Jobs jobs;
  jobs.put({3, -1, 2, -1}, {"a", "b", "c", "d"});
  jobs.put({-1, 2}, {"e", "f"});
  CHECK(jobs.take(4) == "-1b -1d -1e 2c ");
  jobs.put({0}, {"g"});
  CHECK(jobs.take(3) == "0g 2f 3a ");
}

TEST_CASE("What a call had taken from a priority queue before it ended is back in its place") {
  Jobs jobs;
  jobs.put({1, 1, 2}, {"a", "b", "c"});
  CHECK(code_of([&] { jobs.take(5, {.deadline = std::chrono::milliseconds(10)}); }) == Code::deadline_exceeded);
  jobs.put({1, 0}, {"d", "e"});
  CHECK(jobs.take(5) == "0e 1a 1b 1d 2c ");
}

TEST_CASE("A priority queue may hold priorities alone, and elements of any shape") {
  Graph graph;
  PriorityQueue<> alone(graph);
  PriorityQueue<int> any(graph);
  const auto priority = placeholder<std::int64_t>(graph, Shape{});
  const auto put = alone.enqueue(priority);
  const auto take = alone.dequeue();
  const auto value = placeholder<int>(graph, PartialShape::unknown());
  const auto put_any = any.enqueue(priority, value);
  const auto [least, taken] = any.dequeue();
  Session session(graph);
  for (const int p : {5, 4, 6}) session.run({{priority, std::int64_t{p}}}, put);
  for (const int p : {4, 5, 6}) CHECK(session.run(take).scalar() == p);
  session.run({{priority, std::int64_t{2}}, {value, Tensor<int>({2}, {1, 2})}}, put_any);
  session.run({{priority, std::int64_t{1}}, {value, 7}}, put_any);
  CHECK(session.run(taken).shape() == Shape{});
  CHECK(session.run(taken).shape() == Shape{2});
}

TEST_CASE("Queues of all kinds are saved and restored, closed or not") {
  const auto files = std::make_shared<MemoryFileSystem>();
  struct All {
    All() : padded(graph, {.shapes = {{dynamic}}, .name = "padded"}), jobs(graph, {.name = "jobs"}) {
      put = padded.enqueue(constant(graph, Tensor<int>({3}, {1, 2, 3})));
      first = jobs.enqueue(constant(graph, std::int64_t{2}), constant(graph, std::string("later")));
      second = jobs.enqueue(constant(graph, std::int64_t{1}), constant(graph, std::string("first")));
      rows = padded.dequeue_many(2);
      std::tie(priority, name) = jobs.dequeue_many(2);
    }
    Graph graph;
    PaddingFifoQueue<int> padded;
    PriorityQueue<std::string> jobs;
    Operation put, first, second;
    Output<int> rows;
    Output<std::int64_t> priority;
    Output<std::string> name;
  };
  All before, after;
  Session one = session_with_files(before.graph, files), other = session_with_files(after.graph, files);
  one.run(before.put);
  one.run(before.put);
  one.run(before.first);
  one.run(before.second);
  one.run(before.jobs.close());
  train::Saver saver(before.graph, {.files = files}), restorer(after.graph, {.files = files});
  saver.save(one, "/m/q");
  restorer.restore(other, "/m/q");
  CHECK(other.run(after.rows)(1, 2) == 3);
  CHECK(other.run(after.name)(0) == "first");
  CHECK(code_of([&] { other.run(after.second); }) == Code::cancelled);
}

TEST_CASE("Queues that cannot be are refused in the line that builds them") {
  Graph graph;
  const auto refused = [](auto&& build) { return error_of(build); };
  CHECK_THAT(refused([&] { PaddingFifoQueue<int>(graph, {}); }), Catch::Contains("0 shapes for 1 components"));
  CHECK_THAT(refused([&] { PaddingFifoQueue<int>(graph, {.shapes = {PartialShape::unknown()}}); }),
             Catch::Contains("rank of component 0"));
  CHECK_THAT(refused([&] { RandomShuffleQueue<int>(graph, {.capacity = 3, .min_after_dequeue = 3}); }),
             Catch::Contains("keeps 3") && Catch::Contains("queue_kinds_test.cpp"));
  CHECK_THAT(refused([&] { RandomShuffleQueue<int>(graph, {.min_after_dequeue = -1}); }),
             Catch::Contains("min_after_dequeue is -1"));
  CHECK_THAT(refused([&] {
               PriorityQueue<int>(graph, {.shapes = {{}, {}}});
             }),
             Catch::Contains("2 shapes for 1 components"));
  PriorityQueue<int> jobs(graph);
  const auto many = constant(graph, Tensor<std::int64_t>({2}, {1, 2}));
  CHECK_THAT(refused([&] { static_cast<void>(jobs.enqueue(many, constant(graph, 1))); }),
             Catch::Contains("component 0"));
  PaddingFifoQueue<int> rows(graph, {.shapes = {{dynamic, 2}}});
  CHECK_THAT(refused([&] {
               static_cast<void>(rows.enqueue(constant(graph, Tensor<int>({2, 3}, {1, 2, 3, 4, 5, 6}))));
             }),
             Catch::Contains("component 0"));
}

TEST_CASE("A queue of another kind, or other seeds, under a shared name is refused") {
  const auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{});
  Graph graph;
  const FifoQueue<int> fifo(graph, {.shared_name = "both"});
  const RandomShuffleQueue<int> shuffled(graph, {.seed = 4, .shared_name = "both"});
  Session session(graph, {.devices = {device}});
  session.run(fifo.size());
  CHECK_THROWS_WITH(session.run(shuffled.size()),
                    Catch::Contains("keeps FIFOQueue 'both'") && Catch::Contains("wanted RandomShuffleQueue 'both'"));
  Graph other_graph;
  const RandomShuffleQueue<int> again(other_graph, {.seed = 5, .shared_name = "random"});
  const RandomShuffleQueue<int> first(graph, {.seed = 4, .shared_name = "random"});
  Session other(other_graph, {.devices = {device}});
  session.run(first.size());
  CHECK(code_of([&] { other.run(again.size()); }) == Code::invalid_argument);
}

namespace {

Operation operation_of(const AnyOutput& output) { return output.operation(); }
template <class First, class... Rest>
Operation operation_of(const std::tuple<First, Rest...>& outputs) {
  return std::get<0>(outputs).operation();
}

/// Eight threads put in and eight take out; each element must come out once. Between their takes, the takers ask for
/// more elements than there ever are, until a deadline.
template <class Queue, class Put>
void check_crowd(Graph& graph, const Queue& queue, const Output<int>& taken, const Put& put_with, int num_threads) {
  constexpr int producers = 8, consumers = 8, each = 60;
  const Operation too_many = operation_of(queue.dequeue_many(1000));
  const auto size = queue.size();
  const auto close = queue.close();
  Session session(graph, SessionOptions{.num_threads = num_threads});
  std::array<Ints, consumers> got;
  std::vector<std::jthread> takers;
  for (Ints& mine : got) {
    takers.emplace_back([&session, &mine, taken, too_many] {
      const RunOptions shortly{.deadline = std::chrono::microseconds(200)};
      for (int round = 0;; ++round) {
        if (round % 5 == 4) static_cast<void>(status_of([&] { session.run(shortly, {}, too_many); }));
        Tensor<int> some;
        if (code_of([&] { some = session.run(taken); }) == Code::out_of_range) return;
        mine.insert(mine.end(), some.begin(), some.end());
      }
    });
  }
  {
    std::vector<std::jthread> givers;
    for (int who = 0; who < producers; ++who) {
      givers.emplace_back([&session, &put_with, who] {
        for (int i = 0; i < each; ++i) put_with(session, who * each + i);
      });
    }
  }
  session.run(close);
  takers.clear();
  Ints all;
  for (const Ints& mine : got) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  CHECK(all == first_ints(producers * each));
  CHECK(session.run(size).scalar() == 0);
}

}  // namespace

TEST_CASE("Eight put in and eight take out, on one thread and on several: nothing is lost and nothing comes twice") {
  for (const int num_threads : {1, 3}) {
    {
      Graph graph;
      const FifoQueue<int> queue(graph, {.capacity = 6, .shapes = {{}}});
      const auto x = placeholder<int>(graph, Shape{});
      const auto put = queue.enqueue(x);
      check_crowd(
          graph, queue, queue.dequeue_up_to(4),
          [&](Session& s, int v) {
            s.run({{x, v}}, put);
          },
          num_threads);
    }
    {
      Graph graph;
      const RandomShuffleQueue<int> queue(graph, {.capacity = 9, .min_after_dequeue = 3, .shapes = {{}}, .seed = 2});
      const auto x = placeholder<int>(graph, Shape{});
      const auto put = queue.enqueue(x);
      check_crowd(
          graph, queue, queue.dequeue_up_to(3),
          [&](Session& s, int v) {
            s.run({{x, v}}, put);
          },
          num_threads);
    }
    {
      Graph graph;
      const PriorityQueue<int> queue(graph, {.capacity = 6, .shapes = {{}}});
      const auto x = placeholder<int>(graph, Shape{});
      const auto put = queue.enqueue(cast<std::int64_t>(x % 7), x);
      const auto [priority, value] = queue.dequeue_up_to(4);
      check_crowd(
          graph, queue, value,
          [&](Session& s, int v) {
            s.run({{x, v}}, put);
          },
          num_threads);
    }
    {
      Graph graph;
      const PaddingFifoQueue<int> queue(graph, {.capacity = 6, .shapes = {{dynamic}}});
      const auto x = placeholder<int>(graph, {dynamic});
      const auto put = queue.enqueue(x);
      check_crowd(
          graph, queue, queue.dequeue_up_to(4),
          [&](Session& s, int v) {
            s.run({{x, Tensor<int>({1}, {v})}}, put);
          },
          num_threads);
    }
  }
}

TEST_CASE("With one thread in the pool steps wait for each other in any order") {
  Shuffled numbers({.capacity = 2, .shapes = {{}}, .seed = 1}, 1);
  std::vector<std::promise<Ints>> taken(6);
  for (std::promise<Ints>& promise : taken) {
    numbers.session.run_async({{numbers.count, 4}}, numbers.take_many,
                              [&promise](const Status& status, const Tensor<int>& value) {
                                promise.set_value(status.ok() ? ints_of(value) : Ints{});
                              });
  }
  std::vector<std::promise<bool>> put(4);
  for (std::size_t i = 0; i < put.size(); ++i) {
    Ints values = first_ints(6);
    for (int& value : values) value += 6 * static_cast<int>(i);
    numbers.session.run_async({{numbers.many, vector_of(values)}}, numbers.put_many,
                              [&promise = put[i]](const Status& status) { promise.set_value(status.ok()); });
  }
  Ints all;
  for (std::promise<Ints>& promise : taken) {
    const Ints some = promise.get_future().get();
    all.insert(all.end(), some.begin(), some.end());
  }
  for (std::promise<bool>& promise : put) CHECK(promise.get_future().get());
  std::sort(all.begin(), all.end());
  CHECK(all == first_ints(24));
}
