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

/// Where runners are kept by default.
inline constexpr std::string_view queue_runner_collection = "queue_runners";

namespace detail {
/// `add_queue_runner` for who has no Graph at hand. Precondition: the runner is of that graph.
void list_queue_runner(GraphStore& graph, const QueueRunner& runner, std::string_view collection);
}  // namespace detail

struct QueueRunnerOptions {
  /// Run when nothing more comes; by default it closes the queue.
  Operation close = {};
  /// Run when the coordinator stops; by default it closes the queue and cancels what waits to be put in.
  Operation cancel = {};
};

/// Fills a queue by threads, each of which runs one operation of the graph again and again.
///
/// ```cpp
/// df::train::QueueRunner runner(queue, {queue.enqueue(example), queue.enqueue(example)});  // two threads
/// df::train::add_queue_runner(graph, runner);                                              // for start_queue_runners
/// ```
/// An operation has no more to give when its step fails with OutOfRange (what it reads from was closed and is empty, or
/// `limit_epochs` has come to its end), or when the queue is closed. Its thread ends then, and the last of the runner's
/// threads in that session closes the queue. Any other error stops the coordinator.
///
/// Thread safety: a value type; making one builds, see Graph. Valid while the graph lives.
/// Errors: InvalidArgument for no operations, for operations of another graph, and for what is no queue.
class QueueRunner {
 public:
  template <Element... Ts>
  QueueRunner(const dflow::detail::TypedQueue<Ts...>& queue, std::vector<Operation> enqueue,
              const QueueRunnerOptions& options = {}, const At& at = {})
      : QueueRunner(queue.handle(), std::move(enqueue), options, at) {}
  /// Of a queue whose components are known at run time only.
  QueueRunner(const AnyOutput& queue, std::vector<Operation> enqueue, const QueueRunnerOptions& options = {},
              const At& at = {});

  const AnyOutput& queue() const noexcept { return queue_; }
  const std::vector<Operation>& enqueue() const noexcept { return enqueue_; }
  const Operation& close() const noexcept { return close_; }
  const Operation& cancel() const noexcept { return cancel_; }
  const Output<bool>& is_closed() const noexcept { return is_closed_; }

  /// Starts one thread for each operation, which the coordinator joins, and returns how many; 0 if the coordinator has
  /// threads of this runner and session that run, whatever value of it they were started by. Compiles what they run
  /// first.
  ///
  /// A stop of the coordinator ends steps that wait, and then the queue is cancelled, so that who waits for its
  /// elements goes on with what is left of them or OutOfRange. The threads keep what they need of the session, which
  /// may go, and so may the graph. Errors: those of `Session::prepare`, with nothing started; ResourceExhausted if no
  /// thread can be started, and then the coordinator is stopped.
  int create_threads(Session& session, Coordinator& coordinator) const;

 private:
  friend std::vector<QueueRunner> queue_runners(const Graph& graph, std::string_view collection);
  QueueRunner() = default;

  AnyOutput queue_;
  std::vector<Operation> enqueue_;
  Operation close_, cancel_;
  Output<bool> is_closed_;
};

/// Adds a runner to the graph, with which it is copied, saved and imported: as the nodes queue, close, cancel,
/// is_closed, those that put in, and the queue again. Errors: InvalidArgument for a runner of another graph.
void add_queue_runner(Graph& graph, const QueueRunner& runner, std::string_view collection = queue_runner_collection);

/// Those that the graph has now, in the order in which they were added.
/// Errors: InvalidArgument for a collection that holds something else.
std::vector<QueueRunner> queue_runners(const Graph& graph, std::string_view collection = queue_runner_collection);

/// Starts all runners of the graph that do not run yet, and returns the number of threads. Variables that steps need
/// must have been initialised.
///
/// ```cpp
/// df::train::Coordinator coordinator;
/// df::train::start_queue_runners(session, graph, coordinator);
/// while (!coordinator.should_stop()) session.run(train);  // OutOfRange at the end of the last epoch
/// coordinator.request_stop();
/// coordinator.join();
/// ```
/// Errors: as `queue_runners` and `QueueRunner::create_threads`; runners that were started before go on, unless the
/// coordinator was stopped.
int start_queue_runners(Session& session, const Graph& graph, Coordinator& coordinator,
                        std::string_view collection = queue_runner_collection);

}  // namespace dflow::train
