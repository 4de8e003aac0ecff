#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/ops/data_flow/queue.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/input/coordinator.hpp>

#include <string_view>
#include <utility>
#include <vector>

namespace dflow::train {

class QueueRunner;

/// The default collection of runners.
inline constexpr std::string_view queue_runner_collection = "queue_runners";

namespace detail {
/// `add_queue_runner` without a Graph. Precondition: the runner is of that graph.
void list_queue_runner(GraphStore& graph, const QueueRunner& runner, std::string_view collection);
}  // namespace detail

struct QueueRunnerOptions {
  /// Runs when nothing more comes; by default it closes the queue.
  Operation close = {};
  /// Runs when the coordinator stops; by default it closes the queue and cancels waiting enqueues.
  Operation cancel = {};
};

/// Fills a queue by threads. Each thread runs one operation of the graph again and again.
///
/// ```cpp
/// df::train::QueueRunner runner(queue, {queue.enqueue(example), queue.enqueue(example)});  // two threads
/// df::train::add_queue_runner(graph, runner);                                              // for start_queue_runners
/// ```
/// An operation has no more to give when its step fails with OutOfRange, or when the queue is closed. A step fails
/// with OutOfRange when its source is closed and empty, or when `limit_epochs` has come to its end. The thread of the
/// operation then ends, and the last of the runner's threads in that session closes the queue. Any other error stops
/// the coordinator.
/// Thread safety: a value type; making one builds, see Graph. Valid while the graph lives.
/// Errors: InvalidArgument for no operations, for operations of another graph, and for an edge that is no queue.
class QueueRunner {
 public:
  template <Element... Ts>
  QueueRunner(const dflow::detail::TypedQueue<Ts...>& queue, std::vector<Operation> enqueue,
              const QueueRunnerOptions& options = {}, const At& at = {})
      : QueueRunner(queue.handle(), std::move(enqueue), options, at) {}
  /// For a queue with components that are known only at run time.
  QueueRunner(const AnyOutput& queue, std::vector<Operation> enqueue, const QueueRunnerOptions& options = {},
              const At& at = {});

  const AnyOutput& queue() const noexcept { return queue_; }
  const std::vector<Operation>& enqueue() const noexcept { return enqueue_; }
  const Operation& close() const noexcept { return close_; }
  const Operation& cancel() const noexcept { return cancel_; }
  const Output<bool>& is_closed() const noexcept { return is_closed_; }

  /// Starts one thread for each operation and returns the number of threads; the coordinator joins them. Returns 0 if
  /// threads of this runner and session already run in the coordinator, even if another copy of the runner started
  /// them. Compiles the operations of the threads first.
  ///
  /// A stop of the coordinator ends waiting steps, and then cancels the queue. A consumer that waits for elements goes
  /// on with the rest of them, or gets OutOfRange. The threads keep their parts of the session, so session and graph
  /// may be destroyed. Errors: as `Session::prepare`, with no thread started; ResourceExhausted if a thread cannot be
  /// started, and the coordinator is then stopped.
  int create_threads(Session& session, Coordinator& coordinator) const;

 private:
  friend std::vector<QueueRunner> queue_runners(const Graph& graph, std::string_view collection);
  QueueRunner() = default;

  AnyOutput queue_;
  std::vector<Operation> enqueue_;
  Operation close_, cancel_;
  Output<bool> is_closed_;
};

/// Adds a runner to the graph. Copying, saving and importing the graph include the runner. Its collection has the
/// nodes queue, close, cancel, is_closed, the enqueue operations, and the queue again. Errors: InvalidArgument for a
/// runner of another graph.
void add_queue_runner(Graph& graph, const QueueRunner& runner, std::string_view collection = queue_runner_collection);

/// The runners that the graph has now, in the order of their addition.
/// Errors: InvalidArgument for a collection that holds something else.
std::vector<QueueRunner> queue_runners(const Graph& graph, std::string_view collection = queue_runner_collection);

/// Starts all runners of the graph that do not run yet, and returns the number of threads. Initialise the variables of
/// their steps before.
///
/// ```cpp
/// df::train::Coordinator coordinator;
/// df::train::start_queue_runners(session, graph, coordinator);
/// while (!coordinator.should_stop()) session.run(train);  // OutOfRange at the end of the last epoch
/// coordinator.request_stop();
/// coordinator.join();
/// ```
/// Errors: as `queue_runners` and `QueueRunner::create_threads`. After an error, runners that were started before go
/// on, unless the coordinator was stopped.
int start_queue_runners(Session& session, const Graph& graph, Coordinator& coordinator,
                        std::string_view collection = queue_runner_collection);

}  // namespace dflow::train
