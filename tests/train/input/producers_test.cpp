#include <dflow/train/input/producers.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "train/input/running_input.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

// The behaviours come from TensorFlow 0.8, python/training/input_test.py.

using namespace dflow;
using Catch::Matchers::Contains;
using dflow::train::Coordinator;

namespace {

using ProducedStrings = std::vector<std::string>;
using ProducedInts = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("Epochs are limited to their number, which nobody need initialise") {
  Graph graph;
  const Output<std::string> seven = constant(graph, std::string("seven"));
  const Output<std::string> limited = train::limit_epochs(seven, 2);
  CHECK(limited.shape() == PartialShape{});
  CHECK(train::limit_epochs(seven, std::nullopt) == seven);
  Session session(graph, {.num_threads = 1});
  CHECK(session.run(limited).scalar() == "seven");
  CHECK(session.run(limited).scalar() == "seven");
  for (int again = 0; again < 2; ++again) {
    const Status status = status_of([&] { return session.run(limited); });
    CHECK(status.code() == Code::out_of_range);
    CHECK(status.message() == "variable 'limit_epochs/epochs' has reached its limit of 2");
  }
  CHECK(local_variables(graph).size() == 1);
  CHECK(graph.collection("variables").empty());
}

TEST_CASE("Epochs are counted once however many threads see the first one") {
  Graph graph;
  const Output<int> limited = train::limit_epochs(constant(graph, 7), 100);
  Session session(graph, {.num_threads = 2});
  std::atomic<int> count{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        try {
          for (;; ++count) session.run(limited);
        } catch (const Error&) {  // the end; assertions are for one thread
        }
      });
    }
  }
  CHECK(count == 100);
}

TEST_CASE("Fewer epochs than one are refused where they are asked for") {
  Graph graph;
  const auto x = constant(graph, Tensor<int>({2}, {1, 2}));
  const std::size_t nodes = graph.num_nodes();
  CHECK(contains(error_of([&] { return train::limit_epochs(x, 0); }), "num_epochs must be at least 1, not 0"));
  CHECK(contains(error_of([&] { return train::limit_epochs(x, -1); }), "producers_test.cpp"));
  CHECK_THROWS_AS(train::input_producer(x, {.num_epochs = 0}), Error);
  CHECK_THROWS_AS(train::limit_epochs(Output<int>(), 1), Error);
  CHECK(graph.num_nodes() == nodes);
}

TEST_CASE("Rows come in order, epoch after epoch") {
  Graph graph;
  const auto table = constant(graph, Tensor<int>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const auto queue = train::input_producer(table, {.num_epochs = 2, .shuffle = false});
  const Output<int> row = queue.dequeue(), rows = queue.dequeue_many(3);
  CHECK(row.shape() == PartialShape{2});
  RunningInput running(graph);
  for (int epoch = 0; epoch < 2; ++epoch) {
    const Tensor<int> got = running.session.run(rows);
    CHECK(elements_of(got) == std::vector<int>{1, 2, 3, 4, 5, 6});
  }
  CHECK(code_of([&] { return running.session.run(row); }) == Code::out_of_range);
  running.coordinator.join();
}

TEST_CASE("ProducedStrings come in order, epoch after epoch") {
  const int num_threads = GENERATE(1, 3);
  Graph graph;
  const ProducedStrings names{"to", "be", "or", "not", "to", "be"};
  const auto queue = train::string_input_producer(graph, names, {.num_epochs = 3, .shuffle = false});
  const Output<std::string> name = queue.dequeue();
  RunningInput running(graph, {.num_threads = num_threads});
  ProducedStrings expected;
  for (int epoch = 0; epoch < 3; ++epoch) expected.insert(expected.end(), names.begin(), names.end());
  CHECK(values_until_end(running.session, name) == expected);
  running.coordinator.join();
  CHECK_FALSE(running.coordinator.should_stop());
}

TEST_CASE("Produced strings are scalars, or have the shape that the options say") {
  Graph graph;
  const Output<std::string> names = placeholder<std::string>(graph);
  CHECK(train::string_input_producer(names).dequeue().shape() == PartialShape{});
  const auto pairs = train::string_input_producer(names, {.element_shape = PartialShape{2}}).dequeue();
  CHECK(pairs.shape() == PartialShape{2});
}

TEST_CASE("Shuffled strings come once in each epoch, and all orders about as often") {
  Graph graph;
  const ProducedStrings names{"a", "b", "c"};
  constexpr int epochs = 1200;
  const auto queue = train::string_input_producer(graph, names, {.num_epochs = epochs, .seed = 271828});
  const Output<std::string> three = queue.dequeue_many(3);
  RunningInput running(graph);
  std::map<std::string, int> orders;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const Tensor<std::string> got = running.session.run(three);
    ++orders[got(0) + got(1) + got(2)];
  }
  CHECK(orders.size() == 6);
  // The bound is the bound of TensorFlow's test: far from the effect of chance.
  for (const auto& [order, times] : orders) {
    INFO(order << ": " << times);
    CHECK(times > epochs / 6 - 50);
    CHECK(times < epochs / 6 + 50);
  }
  CHECK(code_of([&] { return running.session.run(three); }) == Code::out_of_range);
}

TEST_CASE("A seed decides the orders") {
  const auto order = [](std::uint64_t graph_seed, std::uint64_t seed) {
    Graph graph({.seed = graph_seed});
    const auto queue = train::range_input_producer(graph, 20, {.num_epochs = 2, .seed = seed});
    const Output<std::int32_t> number = queue.dequeue();
    RunningInput running(graph);
    return values_until_end(running.session, number);
  };
  CHECK(order(0, 5) == order(0, 5));
  CHECK(order(0, 5) != order(0, 6));
  CHECK(order(3, 0) == order(3, 0));
  CHECK(order(3, 0) != order(4, 0));
  const ProducedInts two_epochs = order(0, 5);
  const std::set<std::int32_t> first(two_epochs.begin(), two_epochs.begin() + 20);
  CHECK(first.size() == 20);
  CHECK(two_epochs.size() == 40);
  CHECK(ProducedInts(two_epochs.begin(), two_epochs.begin() + 20) !=
        ProducedInts(two_epochs.begin() + 20, two_epochs.end()));
}

TEST_CASE("Numbers of a range come in order, epoch after epoch") {
  Graph graph;
  const auto queue = train::range_input_producer(graph, 5, {.num_epochs = 2, .shuffle = false, .capacity = 1});
  const Output<std::int32_t> number = queue.dequeue();
  RunningInput running(graph);
  CHECK(values_until_end(running.session, number) == ProducedInts{0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
}

TEST_CASE("Without a number of epochs there is no end, until the coordinator stops") {
  Graph graph;
  const auto queue = train::range_input_producer(graph, 3, {.shuffle = false});
  const Output<std::int32_t> number = queue.dequeue();
  RunningInput running(graph);
  const ProducedInts numbers = values_until_end(running.session, number, 300);
  CHECK(numbers.size() == 300);
  CHECK(numbers[299] == 2);
  running.coordinator.request_stop();
  running.coordinator.join();
  // The elements in the queue are there, and then there are no more.
  CHECK(values_until_end(running.session, number).size() <= 32 + 3);
}

TEST_CASE("Slices of several tensors come together") {
  Graph graph;
  const auto names = constant(graph, Tensor<std::string>({3}, {"a", "b", "c"}));
  const auto numbers = constant(graph, Tensor<std::int64_t>({3, 2}, {1, 2, 3, 4, 5, 6}));
  auto [name, pair] = train::slice_input_producer(std::tuple{names, numbers}, {.num_epochs = 2, .seed = 7});
  static_assert(std::is_same_v<decltype(pair), Output<std::int64_t>>);
  CHECK(name.shape() == PartialShape{});
  CHECK(pair.shape() == PartialShape{2});
  Output<std::string> alone = train::slice_input_producer(names, {.num_epochs = 1, .shuffle = false});
  RunningInput running(graph);
  std::map<std::string, int> seen;
  for (int i = 0; i < 6; ++i) {
    auto [a, b] = running.session.run(name, pair);
    ++seen[a.scalar()];
    CHECK(b(0) == 1 + 2 * (a.scalar()[0] - 'a'));
    CHECK(b(1) == b(0) + 1);
  }
  CHECK(seen == std::map<std::string, int>{{"a", 2}, {"b", 2}, {"c", 2}});
  CHECK(code_of([&] { return running.session.run(pair); }) == Code::out_of_range);
  CHECK(values_until_end(running.session, alone) == ProducedStrings{"a", "b", "c"});
}

TEST_CASE("Rows that only a step shows are produced too, and none stop the coordinator") {
  Graph graph;
  const Variable<std::int32_t> end(graph, 5);
  const Output<std::int32_t> rows = range(constant(graph, 1), Output<std::int32_t>(end), constant(graph, 1));
  CHECK(rows.shape() == PartialShape{dynamic});
  const auto queue = train::input_producer(rows, {.num_epochs = 1, .shuffle = false});
  const Output<std::int32_t> row = queue.dequeue();
  auto slice = train::slice_input_producer(rows, {.num_epochs = 1, .shuffle = false});
  Session session(graph, {.num_threads = 1});
  session.run(initialize_variables(graph));
  Coordinator coordinator;
  train::start_queue_runners(session, graph, coordinator);
  CHECK(values_until_end(session, row) == ProducedInts{1, 2, 3, 4});
  CHECK(values_until_end(session, slice) == ProducedInts{1, 2, 3, 4});
  coordinator.join();

  Session other(graph, {.num_threads = 1});
  other.run(end.assign(1));
  train::start_queue_runners(other, graph, coordinator);
  CHECK(code_of([&] { return other.run(row); }) == Code::out_of_range);
  CHECK_THROWS_WITH(coordinator.join(), Contains("needs at least one row"));
}

TEST_CASE("What cannot be produced is refused in the line that asks for it") {
  Graph graph;
  const auto table = constant(graph, Tensor<int>({2, 2}, {1, 2, 3, 4}));
  const auto other = constant(graph, Tensor<int>({3}, {1, 2, 3}));
  const auto scalar = constant(graph, 1);
  const auto none = constant(graph, Tensor<int>(Shape{0}));
  const std::size_t nodes = graph.num_nodes();
  CHECK(contains(error_of([&] { return train::input_producer(scalar); }), "a scalar has no rows"));
  CHECK(contains(error_of([&] { return train::input_producer(none); }), "needs at least one row"));
  CHECK(contains(error_of([&] { return train::string_input_producer(graph, {}); }), "needs at least one string"));
  CHECK(contains(error_of([&] { return train::range_input_producer(graph, 0); }), "no number from 0 to below 0"));
  CHECK(contains(error_of([&] { return train::input_producer(table, {.element_shape = PartialShape{3}}); }),
                 "element_shape [3] does not fit rows [2]"));
  // A queue without an end, of rows without an end, would fill the memory.
  CHECK(contains(error_of([&] { return train::input_producer(table, {.capacity = 0}); }),
                 "capacity must be at least 1, not 0"));
  CHECK(contains(error_of([&] { return train::string_input_producer(graph, {"a"}, {.capacity = -1}); }),
                 "capacity must be at least 1, not -1"));
  CHECK(contains(error_of([&] { return train::range_input_producer(graph, 3, {.num_epochs = 0}); }),
                 "num_epochs must be at least 1, not 0"));
  CHECK(contains(error_of([&] {
                   return train::slice_input_producer(std::tuple{table, other});
                 }),
                 "different numbers of rows: 2 and 3"));
  CHECK(contains(error_of([&] { return train::slice_input_producer(scalar); }), "a scalar has no rows"));
  CHECK(graph.num_nodes() == nodes);
  CHECK(graph.collection(train::queue_runner_collection).empty());
}
