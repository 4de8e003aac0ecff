#include <dflow/train/input/queue_runner.hpp>

#include "catch.hpp"
#include "errors.hpp"

#include <dflow/dflow.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// The behaviours are those of TensorFlow 0.8, python/training/queue_runner_test.py.

using namespace dflow;
using Catch::Matchers::Contains;
using dflow::train::Coordinator;
using dflow::train::QueueRunner;
using namespace std::chrono_literals;

namespace {

/// A queue of numbers that a runner copies into another one, until it is closed.
struct Copying {
  explicit Copying(std::vector<int> numbers, std::int64_t capacity = 4, int threads = 1, int num_threads = 2)
      : source(graph, {.shapes = {{}}, .name = "source"}),
        copies(graph, {.capacity = capacity, .shapes = {{}}, .name = "copies"}),
        runner(copies, std::vector<Operation>(static_cast<std::size_t>(threads), copies.enqueue(source.dequeue()))),
        session(std::make_unique<Session>(graph, SessionOptions{.num_threads = num_threads})) {
    Tensor<int> values(Shape({static_cast<std::int64_t>(numbers.size())}));
    std::copy(numbers.begin(), numbers.end(), values.data());
    session->run(source.enqueue_many(constant(graph, values)));
    close_source = source.close();
    take = copies.dequeue();
  }
  std::vector<int> take_all() {
    std::vector<int> taken;
    try {
      for (;;) taken.push_back(session->run(take).scalar());
    } catch (const Error& error) {
      CHECK(error.code() == Code::out_of_range);
    }
    return taken;
  }

  Graph graph;
  FifoQueue<int> source, copies;
  QueueRunner runner;
  std::unique_ptr<Session> session;
  Operation close_source;
  Output<int> take;
};

std::vector<int> count_to(int n) {
  std::vector<int> numbers;
  for (int i = 0; i < n; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

TEST_CASE("A runner fills its queue, and closes it when nothing more comes") {
  const int num_threads = GENERATE(1, 2);
  Copying copying(count_to(50), 4, 1, num_threads);
  copying.session->run(copying.close_source);
  Coordinator coordinator;
  CHECK(copying.runner.create_threads(*copying.session, coordinator) == 1);
  CHECK(copying.take_all() == count_to(50));
  coordinator.join();
  CHECK_FALSE(coordinator.should_stop());
  CHECK(copying.session->run(copying.copies.is_closed()).scalar());
}
