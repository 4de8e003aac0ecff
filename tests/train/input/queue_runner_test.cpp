#include <dflow/train/input/queue_runner.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// The behaviours come from TensorFlow 0.8, python/training/queue_runner_test.py.

using namespace dflow;
using Catch::Matchers::Contains;
using dflow::train::Coordinator;
using dflow::train::QueueRunner;
using namespace std::chrono_literals;

namespace {

/// A queue of numbers that a runner copies into another one, until it is closed.
struct CopyingRunner {
  explicit CopyingRunner(std::vector<int> numbers, std::int64_t capacity = 4, int threads = 1, int num_threads = 2)
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

/// Passes on its input, and stops a coordinator.
struct RunnerTestStop : Op<"RunnerTestStop", TypeList<std::int32_t>> {
  static inline Coordinator* coordinator = nullptr;
  static PartialShape infer(const Attrs&, const PartialShape& x) { return x; }
};

std::vector<int> count_to(int n) {
  std::vector<int> numbers;
  for (int i = 0; i < n; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

template <>
struct dflow::Kernel<RunnerTestStop, dflow::Cpu, std::int32_t> {
  void operator()(KernelContext&, const Tensor<std::int32_t>& x, Tensor<std::int32_t>& y) const {
    *y.data() = *x.data();
    RunnerTestStop::coordinator->request_stop();
  }
};

TEST_CASE("A runner fills its queue, and closes it when nothing more comes") {
  const int num_threads = GENERATE(1, 2);
  CopyingRunner copying(count_to(50), 4, 1, num_threads);
  copying.session->run(copying.close_source);
  Coordinator coordinator;
  CHECK(copying.runner.create_threads(*copying.session, coordinator) == 1);
  CHECK(copying.take_all() == count_to(50));
  coordinator.join();
  CHECK_FALSE(coordinator.should_stop());
  CHECK(copying.session->run(copying.copies.is_closed()).scalar());
}

TEST_CASE("A runner of several threads closes its queue when the last one has no more") {
  CopyingRunner copying(count_to(200), 4, 4);
  Coordinator coordinator;
  CHECK(copying.runner.create_threads(*copying.session, coordinator) == 4);
  copying.session->run(copying.close_source);
  std::vector<int> taken = copying.take_all();
  std::sort(taken.begin(), taken.end());
  CHECK(taken == count_to(200));
  coordinator.join();
}

TEST_CASE("Three runners in a row run on a pool of one thread") {
  Graph graph;
  FifoQueue<int> first(graph, {.capacity = 2, .shapes = {{}}}), second(graph, {.capacity = 2, .shapes = {{}}}),
      third(graph, {.capacity = 2, .shapes = {{}}});
  const Variable<std::int64_t> steps(graph, std::int64_t{0}, {.trainable = false});
  const auto number = cast<std::int32_t>(count_up_to(steps, 100));
  train::add_queue_runner(graph, QueueRunner(first, {first.enqueue(number)}));
  train::add_queue_runner(graph, QueueRunner(second, {second.enqueue(first.dequeue() * 2)}));
  train::add_queue_runner(graph, QueueRunner(third, {third.enqueue(second.dequeue() + 1)}));
  const Output<int> ten = third.dequeue_many(10), one = third.dequeue();
  Session session(graph, {.num_threads = 1});
  session.run(initialize_variables(graph));
  Coordinator coordinator;
  CHECK(train::start_queue_runners(session, graph, coordinator) == 3);
  for (int i = 0; i < 10; ++i) {
    const Tensor<int> taken = session.run(ten);
    for (int k = 0; k < 10; ++k) CHECK(taken(k) == 2 * (10 * i + k) + 1);
  }
  CHECK(code_of([&] { return session.run(one); }) == Code::out_of_range);
  coordinator.join();
  CHECK_FALSE(coordinator.should_stop());
}

TEST_CASE("An error of a runner stops the coordinator, and whoever waits for an element") {
  Graph graph;
  FifoQueue<float> queue(graph, {.capacity = 4, .shapes = {{}}});
  const Variable<float> never(graph, 0.0f);
  const QueueRunner runner(queue, {queue.enqueue(Output<float>(never))});
  const Output<float> take = queue.dequeue();
  Session session(graph, {.num_threads = 1});
  Coordinator coordinator;
  CHECK(runner.create_threads(session, coordinator) == 1);
  CHECK(code_of([&] { return session.run(take); }) == Code::out_of_range);
  try {
    coordinator.join();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Code::failed_precondition);
    CHECK(mentions(error.status(), "has not been initialized"));
    CHECK(mentions(error.status(), "queue_runner_test.cpp"));
  }
}

TEST_CASE("A stop ends runners that wait for room, and leaves what is in the queue") {
  CopyingRunner copying(count_to(50), 4, 3);
  Coordinator coordinator;
  copying.runner.create_threads(*copying.session, coordinator);
  while (copying.session->run(copying.copies.size()).scalar() < 4) std::this_thread::yield();
  coordinator.request_stop();
  coordinator.join();
  CHECK(copying.session->run(copying.copies.is_closed()).scalar());
  CHECK(copying.take_all().size() == 4);
}

TEST_CASE("A stop ends who waits for more than there is") {
  CopyingRunner copying({1, 2, 3}, 8);
  Coordinator coordinator;
  copying.runner.create_threads(*copying.session, coordinator);
  const Output<int> ten = copying.copies.dequeue_many(10);
  coordinator.start("trains", [&] { copying.session->run(ten); });
  while (copying.session->run(copying.source.size()).scalar() > 0) std::this_thread::yield();
  coordinator.request_stop();
  coordinator.join();
}

TEST_CASE("A queue that somebody else closes is an end as well") {
  CopyingRunner copying(count_to(20), 4, 2);
  Coordinator coordinator;
  copying.runner.create_threads(*copying.session, coordinator);
  while (copying.session->run(copying.copies.size()).scalar() < 4) std::this_thread::yield();
  copying.session->run(copying.copies.close(true));
  coordinator.join();
  CHECK_FALSE(coordinator.should_stop());
}

TEST_CASE("A second call starts nothing while the threads run, and all of them when they have ended") {
  CopyingRunner copying({}, 4, 2);
  train::add_queue_runner(copying.graph, copying.runner);
  Coordinator coordinator;
  CHECK(train::start_queue_runners(*copying.session, copying.graph, coordinator) == 2);
  CHECK(train::start_queue_runners(*copying.session, copying.graph, coordinator) == 0);
  CHECK(copying.runner.create_threads(*copying.session, coordinator) == 0);
  Session moved = std::move(*copying.session);
  CHECK(copying.runner.create_threads(moved, coordinator) == 0);
  CHECK(code_of([&] { return copying.runner.create_threads(*copying.session, coordinator); }) ==
        Code::failed_precondition);
  coordinator.request_stop();
  coordinator.join();
  coordinator.clear_stop();
  CHECK(copying.runner.create_threads(moved, coordinator) == 2);
  moved.run(copying.close_source);
  coordinator.join();
}

TEST_CASE("Runners of several sessions are each session's own") {
  CopyingRunner copying(count_to(10), 20, 1);
  Session other(copying.graph, {.num_threads = 1});
  Coordinator coordinator;
  CHECK(copying.runner.create_threads(*copying.session, coordinator) == 1);
  CHECK(copying.runner.create_threads(other, coordinator) == 1);
  CHECK(copying.runner.create_threads(other, coordinator) == 0);
  copying.session->run(copying.close_source);
  CHECK(copying.take_all() == count_to(10));
  // The other session has queues of its own: nothing is in them, and they are open.
  CHECK_FALSE(other.run(copying.copies.is_closed()).scalar());
  // The first session's thread has closed the queue, and is about to end.
  while (coordinator.running_threads().size() > 1) std::this_thread::yield();
  CHECK(coordinator.running_threads().size() == 1);
  other.run(copying.close_source);
  coordinator.join();
  CHECK(other.run(copying.copies.is_closed()).scalar());
}

TEST_CASE("Runners go on without the session's object and the graph, until they are stopped") {
  Coordinator coordinator;
  {
    CopyingRunner copying(count_to(3), 100);
    copying.runner.create_threads(*copying.session, coordinator);
  }
  CHECK(coordinator.running_threads() == std::vector<std::string>{"queue copies: QueueEnqueue"});
  coordinator.request_stop();
  coordinator.join();

  // Or the coordinator goes first.
  CopyingRunner copying(count_to(3), 100);
  {
    Coordinator inner;
    copying.runner.create_threads(*copying.session, inner);
  }
  CHECK(copying.session->run(copying.copies.is_closed()).scalar());
}

TEST_CASE("Runners are copied and saved with the graph") {
  CopyingRunner copying(count_to(0), 4, 2);
  train::add_queue_runner(copying.graph, copying.runner);
  FifoQueue<int> other(copying.graph, {.shapes = {{}}, .name = "other"});
  train::add_queue_runner(copying.graph,
                          QueueRunner(other, {other.enqueue(copying.copies.dequeue())},
                                      {.close = copying.copies.close(), .cancel = copying.source.close(true)}),
                          "others");
  const Graph copied(copying.graph);
  const GraphDef def = to_graph_def(copying.graph);
  const Graph imported = import_graph(def, standard_op_table());
  Graph around;
  import_graph_into(around, def, standard_op_table(), {.prefix = "inner"});
  for (const Graph* graph : {&copied, &imported, static_cast<const Graph*>(&around)}) {
    const std::string prefix = graph == &around ? "inner/" : "";
    const std::vector<QueueRunner> runners = train::queue_runners(*graph);
    REQUIRE(runners.size() == 1);
    CHECK(runners[0].queue() == graph->output(prefix + "copies"));
    CHECK(runners[0].enqueue() == std::vector<Operation>(2, graph->find(prefix + "QueueEnqueue")));
    CHECK(runners[0].close().name() == prefix + copying.runner.close().name());
    CHECK(runners[0].cancel().name() == prefix + copying.runner.cancel().name());
    const std::vector<QueueRunner> others = train::queue_runners(*graph, "others");
    REQUIRE(others.size() == 1);
    CHECK(others[0].queue() == graph->output(prefix + "other"));

    Session session(*graph, {.num_threads = 1});
    Coordinator coordinator;
    CHECK(train::start_queue_runners(session, *graph, coordinator) == 2);
    coordinator.request_stop();
    coordinator.join();
  }
}

TEST_CASE("What closes and cancels may be said") {
  Graph graph;
  FifoQueue<int> source(graph, {.shapes = {{}}}), queue(graph, {.capacity = 1, .shapes = {{}}});
  const Variable<int> closed(graph, 0), cancelled(graph, 0);
  const QueueRunner runner(queue, {queue.enqueue(source.dequeue())},
                           {.close = group({queue.close(), closed.assign(1)}), .cancel = cancelled.assign(1)});
  const Operation close_source = source.close();
  Session session(graph, {.num_threads = 1});
  session.run(initialize_variables(graph));
  Coordinator coordinator;
  runner.create_threads(session, coordinator);
  session.run(close_source);
  coordinator.join();
  CHECK(session.run(closed).scalar() == 1);
  CHECK(session.run(cancelled).scalar() == 0);
  coordinator.request_stop();
  runner.create_threads(session, coordinator);
  coordinator.join();
  CHECK(session.run(cancelled).scalar() == 1);
}

TEST_CASE("A closing step that fails stops the coordinator") {
  Graph graph;
  FifoQueue<int> source(graph, {.shapes = {{}}}), queue(graph, {.shapes = {{}}});
  const Variable<int> never(graph, 0);
  const QueueRunner runner(queue, {queue.enqueue(source.dequeue())}, {.close = never.assign_add(1)});
  Session session(graph, {.num_threads = 1});
  session.run(source.close());
  Coordinator coordinator;
  runner.create_threads(session, coordinator);
  CHECK_THROWS_WITH(coordinator.join(), Contains("has not been initialized"));
}

TEST_CASE("A runner whose step cannot be compiled starts nothing") {
  Graph graph;
  FifoQueue<int> queue(graph, {.shapes = {{}}});
  Output<int> elsewhere;
  {
    const auto on = graph.device("/device:GPU:7");
    elsewhere = constant(graph, 1) + 1;
  }
  const QueueRunner runner(queue, {queue.enqueue(constant(graph, 1)), queue.enqueue(elsewhere)});
  Session session(graph, {.num_threads = 1});
  Coordinator coordinator;
  CHECK_THROWS_AS(runner.create_threads(session, coordinator), Error);
  CHECK(coordinator.running_threads().empty());
}

TEST_CASE("A runner needs a queue and operations of its graph") {
  Graph graph, other;
  FifoQueue<int> queue(graph, {.shapes = {{}}, .name = "numbers"}), theirs(other, {.shapes = {{}}});
  const auto one = constant(graph, 1);
  const Operation put = queue.enqueue(one), foreign = theirs.enqueue(constant(other, 1));
  CHECK(contains(error_of([&] { return QueueRunner(queue, {}); }), "the runner of queue 'numbers' has nothing to run"));
  CHECK(contains(error_of([&] { return QueueRunner(queue, {put, foreign}); }), "of another graph"));
  CHECK(contains(error_of([&] { return QueueRunner(queue, {Operation()}); }), "is empty"));
  CHECK(contains(error_of([&] { return QueueRunner(queue, {put}, {.close = foreign}); }), "of another graph"));
  CHECK(contains(error_of([&] { return QueueRunner(queue, {put}, {.cancel = foreign}); }), "of another graph"));
  CHECK(contains(error_of([&] { return QueueRunner(AnyOutput(), {put}); }), "needs a queue"));
  CHECK_THROWS_AS(QueueRunner(one, {put}), Error);
  CHECK_THROWS_AS(train::add_queue_runner(other, QueueRunner(queue, {put})), Error);
}

TEST_CASE("A collection of something else has no runners") {
  Graph graph;
  FifoQueue<int> queue(graph, {.shapes = {{}}, .name = "numbers"});
  const Operation handle = queue.handle().operation(), put = queue.enqueue(constant(graph, 1)), close = queue.close();
  const Operation closed = queue.is_closed().operation();
  CHECK(train::queue_runners(graph).empty());
  const auto refused = [&](std::string_view collection, std::vector<Operation> nodes) {
    for (const Operation& node : nodes) graph.add_to_collection(collection, node);
    return contains(error_of([&] { return train::queue_runners(graph, collection); }), collection);
  };
  CHECK(refused("short", {handle, close}));
  CHECK(refused("without end", {handle, close, close, closed, put}));
  CHECK(refused("without operations", {handle, close, close, closed, handle}));
  CHECK(refused("without a queue", {put, close, close, closed, put, put}));
  CHECK(refused("two", {handle, close, close, closed, put, handle, put}));
  graph.add_to_collection("of another type", handle);
  for (const Operation& node : {close, close, handle, put, handle}) graph.add_to_collection("of another type", node);
  CHECK_THROWS_AS(train::queue_runners(graph, "of another type"), Error);
}

TEST_CASE("A runner stops all from within its step") {
  Graph graph;
  FifoQueue<int> queue(graph, {.shapes = {{}}});
  const QueueRunner runner(queue, {queue.enqueue(apply<RunnerTestStop>(constant(graph, 1)))});
  Coordinator coordinator;
  RunnerTestStop::coordinator = &coordinator;
  constexpr auto ops = standard_ops + dflow::ops<RunnerTestStop>;
  Session session(graph, {.ops = ops, .num_threads = 1});
  runner.create_threads(session, coordinator);
  coordinator.wait_for_stop();
  coordinator.join();
  CHECK(session.run(queue.is_closed()).scalar());
}

TEST_CASE("Runners are started, stopped and started again under load") {
  for (int round = 0; round < 10; ++round) {
    CopyingRunner copying(count_to(100), 3, 4);
    Coordinator coordinator;
    copying.runner.create_threads(*copying.session, coordinator);
    coordinator.start("trains", [&] {
      const auto step = copying.session->prepare(feeds(), fetches(copying.take));
      for (int i = 0; i < 10 * round; ++i) step();
      if (round % 2 == 0) throw_error(Status::internal("enough"));
      coordinator.request_stop();
    });
    for (int i = 0; i < 3; ++i) copying.runner.create_threads(*copying.session, coordinator);
    CHECK(code_of([&] { return coordinator.join(), 0; }) == (round % 2 == 0 ? Code::internal : Code::ok));
    CHECK(copying.take_all().size() <= 3);
  }
}
