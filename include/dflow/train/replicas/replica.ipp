#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/data_flow/queue.hpp>
#include <dflow/train/replicas/replica.hpp>
#include <dflow/train/saving/savable_resources.hpp>

#include <set>
#include <string>

namespace dflow::train {

Variable<std::int64_t> detail::shared_global_step(GraphStore& graph, const MinimizeOptions& options) {
  if (options.global_step) return *options.global_step;
  const AnyOutput zero = dflow::detail::any_constant(graph, Tensor<std::int64_t>::full({}, 0), {});
  return Variable<std::int64_t>(
      AnyVariable::make(graph, zero, {.name = graph.unique_name("global_step"), .trainable = false}));
}

void detail::unless_lost(const std::function<void()>& end) {
  try {
    end();
  } catch (const Error& error) {
    const Code code = error.status().code();
    const bool is_lost = code == Code::unavailable || code == Code::aborted || code == Code::cancelled ||
                         code == Code::deadline_exceeded;
    if (!is_lost) throw;
  }
}

void detail::leave_at_once(Session& session, const Operation& leave) {
  session.run_async_erased({}, {}, {}, {&leave, 1}, {});
}

std::vector<Operation> detail::waits_of_tasks(GraphStore& graph) {
  const ScopeGuard names = enter_name_scope(graph, "tasks");
  std::set<std::string> tasks;
  for (const NodeId variable : graph.collection("variables")) {
    tasks.insert(processor_of_task(graph, Operation(&graph, variable)));
  }
  tasks.erase("");
  std::vector<Operation> waits;
  waits.reserve(tasks.size());
  for (const std::string& task : tasks) {
    GraphStore::Scope scope = graph.scope();
    scope.control_inputs.clear();
    scope.colocate({});
    scope.device = task;
    const ScopeGuard there = graph.enter(scope);
    // Nobody puts anything in.
    const AnyOutput queue = build<FIFOQueue>(graph, {}, {.component_types = {DType::boolean}, .capacity = 1});
    graph.add_to_collection("not_saved", queue.node_id());
    waits.emplace_back(build<QueueDequeue>({queue}, {.component_types = {DType::boolean}}));
  }
  return waits;
}

detail::Lease::Lease(Session& session, std::span<const Operation> hold) {
  session.run_async_erased(RunOptions{.stop = ends.get_token()}, {}, {}, hold, {});
}

AnyVariable detail::number_of_replica(const AnyOutput& loss, std::string_view name, std::int64_t rank) {
  GraphStore& graph = *loss.graph();
  GraphStore::Scope scope = graph.scope();
  scope.colocate(loss.node_id());
  const ScopeGuard here = graph.enter(scope);
  const AnyOutput none = dflow::detail::any_constant(graph, Tensor<std::int64_t>::full({}, -1), {});
  const std::string of_rank = str_cat(name, "_", rank);  // replicas may share a device
  return AnyVariable::make_unlisted(graph, none, {.name = of_rank, .trainable = false});
}

}  // namespace dflow::train
