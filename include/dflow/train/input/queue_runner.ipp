#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/train/input/queue_runner.hpp>

#include <atomic>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

namespace dflow::train {

namespace detail {

using RunnerStep = PreparedStep<FeedList<>, FetchList<Operation>>;

/// The state that the threads of one runner in one session share.
struct RunnerThreads {
  RunnerStep close, cancel;
  PreparedStep<FeedList<>, FetchList<Output<bool>>> is_closed;
  std::atomic<int> running;
  std::atomic<bool> was_cancelled{false};

  /// Whether this status says that an operation has no more to give.
  bool is_end(const Status& status) const {
    if (status.code() == Code::out_of_range) return true;
    if (status.code() != Code::cancelled) return false;
    try {
      return is_closed().scalar();
    } catch (const Error&) {
      return false;
    }
  }
  void cancel_once() {
    if (was_cancelled.exchange(true)) return;
    try {
      cancel();
    } catch (const Error&) {
      // All threads stop already. An operation that could not be told will see that the session's devices are lost.
    }
  }
};

void run_enqueue(RunnerThreads& threads, const RunnerStep& enqueue, Coordinator& coordinator,
                 const std::stop_token& stop) {
  try {
    while (!stop.stop_requested()) enqueue.run({.stop = stop}, nullptr);
  } catch (...) {
    const Status status = status_of_current_exception();
    if (!stop.stop_requested() && !threads.is_end(status)) coordinator.request_stop(std::current_exception());
  }
  const bool is_last = threads.running.fetch_sub(1) == 1;
  if (stop.stop_requested()) return threads.cancel_once();
  if (is_last) threads.close();
}

void list_queue_runner(GraphStore& graph, const QueueRunner& runner, std::string_view collection) {
  const auto add = [&](const NodeId node) { graph.add_to_collection(collection, node); };
  add(runner.queue().node_id());
  add(runner.close().node_id());
  add(runner.cancel().node_id());
  add(runner.is_closed().node_id());
  for (const Operation& operation : runner.enqueue()) add(operation.node_id());
  add(runner.queue().node_id());
}

/// The node of a collection, as an edge.
AnyOutput first_output(const Operation& operation, std::string_view collection) {
  if (!operation.node().outputs.empty()) return {operation.graph(), Endpoint{operation.node_id(), 0}};
  throw_error(Status::invalid_argument(
      str_cat("collection '", collection, "' has '", operation.name(), "' where a queue runner has an output")));
}

}  // namespace detail

QueueRunner::QueueRunner(const AnyOutput& queue, std::vector<Operation> enqueue, const QueueRunnerOptions& options,
                         const At& at)
    : queue_(queue), enqueue_(std::move(enqueue)), close_(options.close), cancel_(options.cancel) {
  const auto reject = [&](std::string message) {
    throw_error(Status::invalid_argument(std::move(message)).with_node("QueueRunner", at.name).with_location(at.where));
  };
  if (!queue.is_valid()) reject("a queue runner needs a queue");
  if (enqueue_.empty()) reject(str_cat("the runner of queue '", queue.node().name, "' has nothing to run"));
  const auto check = [&](const Operation& operation) {
    if (operation.is_valid() && operation.shares_graph(queue.operation())) return;
    reject(str_cat("the runner of queue '", queue.node().name, "' has an operation that is empty or of another graph"));
  };
  for (const Operation& operation : enqueue_) check(operation);
  if (close_.is_valid()) check(close_);
  if (cancel_.is_valid()) check(cancel_);

  GraphStore::Scope scope = queue.graph()->scope();
  scope.control_inputs.clear();
  const ScopeGuard without_control_inputs = queue.graph()->enter(scope);
  const dflow::detail::AnyQueue erased(queue, {}, {});
  const At unnamed{.where = at.where};
  if (!close_.is_valid()) close_ = erased.close(false, unnamed);
  if (!cancel_.is_valid()) cancel_ = erased.close(true, unnamed);
  is_closed_ = Output<bool>(erased.is_closed(unnamed));
}

int QueueRunner::create_threads(Session& session, Coordinator& coordinator) const {
  // The members of a session stay at their addresses while threads hold them, and so do its devices.
  std::string key = str_cat("queue runner ", reinterpret_cast<std::uintptr_t>(&session.devices()));
  const auto add = [&](NodeId node) { key += str_cat(" ", node.position()); };
  add(queue_.node_id());
  for (const Operation& operation : enqueue_) add(operation.node_id());

  const auto step_of = [&](const Operation& operation) { return session.prepare(feeds(), fetches(operation)); };
  const auto threads = std::shared_ptr<detail::RunnerThreads>(
      new detail::RunnerThreads{step_of(close_), step_of(cancel_), session.prepare(feeds(), fetches(is_closed_)),
                                static_cast<int>(enqueue_.size())});
  std::vector<std::pair<std::string, UniqueFunction<void()>>> bodies;
  bodies.reserve(enqueue_.size());
  for (const Operation& operation : enqueue_) {
    bodies.emplace_back(str_cat("queue ", queue_.node().name, ": ", operation.name()),
                        [threads, enqueue = step_of(operation), &coordinator, stop = coordinator.stop_token()] {
                          detail::run_enqueue(*threads, enqueue, coordinator, stop);
                        });
  }
  const auto count = static_cast<int>(bodies.size());
  return coordinator.start_group(key, std::move(bodies)) ? count : 0;
}

void add_queue_runner(Graph& graph, const QueueRunner& runner, std::string_view collection) {
  if (!runner.queue().is_of(graph.store())) {
    throw_error(
        Status::invalid_argument(str_cat("the runner of queue '", runner.queue().name(), "' is of another graph")));
  }
  detail::list_queue_runner(*graph.store(), runner, collection);
}

std::vector<QueueRunner> queue_runners(const Graph& graph, std::string_view collection) {
  const std::vector<Operation> nodes = graph.collection(collection);
  std::vector<QueueRunner> runners;
  constexpr std::size_t fixed = 4;  // queue, close, cancel, is_closed
  for (std::size_t begin = 0; begin < nodes.size();) {
    std::size_t end = begin + fixed;
    while (end < nodes.size() && nodes[end] != nodes[begin]) ++end;
    if (end >= nodes.size() || end == begin + fixed) {
      throw_error(Status::invalid_argument(
          str_cat("collection '", collection, "' has no whole queue runner at node '", nodes[begin].name(), "'")));
    }
    QueueRunner& runner = runners.emplace_back(QueueRunner());
    runner.queue_ = detail::first_output(nodes[begin], collection);
    runner.close_ = nodes[begin + 1];
    runner.cancel_ = nodes[begin + 2];
    runner.is_closed_ = Output<bool>(detail::first_output(nodes[begin + 3], collection));
    runner.enqueue_.assign(nodes.begin() + static_cast<std::ptrdiff_t>(begin + fixed),
                           nodes.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end + 1;
  }
  return runners;
}

int start_queue_runners(Session& session, const Graph& graph, Coordinator& coordinator, std::string_view collection) {
  int started = 0;
  for (const QueueRunner& runner : queue_runners(graph, collection)) {
    started += runner.create_threads(session, coordinator);
  }
  return started;
}

}  // namespace dflow::train
