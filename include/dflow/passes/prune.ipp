#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/prune.hpp>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// Marks what is needed and copies (or moves) it over, ids renumbered. `Nodes` is anything indexable by NodeId.
template <class Nodes, class Take>
StepGraph prune_nodes(Nodes& nodes, std::span<const Endpoint> feeds, std::span<const Endpoint> fetches,
                      std::span<const NodeId> targets, Take&& take) {
  const std::size_t count = nodes.size();
  const auto at = [](NodeId id) { return static_cast<std::size_t>(id); };
  const auto check = [count](NodeId id) {
    if (id < 0 || static_cast<std::size_t>(id) >= count) throw Error(invalid_argument("an edge does not belong to the graph"));
  };
  std::vector<bool> is_needed(count), is_fed(count);
  std::vector<NodeId> stack;
  const auto need = [&](NodeId id) {
    if (is_needed[at(id)]) return;
    is_needed[at(id)] = true;
    stack.push_back(id);
  };
  const auto need_edge = [&](Endpoint edge) {
    if (is_fed[at(edge.node)] && std::find(feeds.begin(), feeds.end(), edge) != feeds.end()) return;
    need(edge.node);
  };
  // What waits for a placeholder waits for its feed. Another node that is fed still runs for those that wait for it.
  const auto need_control = [&](NodeId id) {
    if (!is_fed[at(id)] || nodes[at(id)].op->name != "Placeholder") need(id);
  };
  for (const Endpoint feed : feeds) {
    check(feed.node);
    is_fed[at(feed.node)] = true;
  }
  for (const Endpoint fetch : fetches) {
    check(fetch.node);
    need_edge(fetch);
  }
  for (const NodeId target : targets) {
    check(target);
    need(target);
  }
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (const Endpoint input : nodes[at(id)].inputs) need_edge(input);
    for (const NodeId control : nodes[at(id)].control_inputs) need_control(control);
  }

  // A fed node whose kernel need not run stays as a bare placeholder of its edge: without inputs, so without needs.
  StepGraph pruned;
  std::vector<NodeId> new_id(count, -1);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_needed[i] && !is_fed[i]) continue;
    new_id[i] = static_cast<NodeId>(kept.size());
    kept.push_back(i);
  }
  pruned.nodes.reserve(kept.size());
  for (const std::size_t i : kept) {
    Node& node = pruned.nodes.emplace_back(take(nodes[i]));
    if (!is_needed[i]) {
      node.inputs.clear();
      node.control_inputs.clear();
      node.is_fed_only = true;
    }
    for (Endpoint& input : node.inputs) {
      if (new_id[at(input.node)] >= 0) input.node = new_id[at(input.node)];
    }
    for (NodeId& control : node.control_inputs) control = new_id[at(control)];
    if (node.colocated_with >= 0) node.colocated_with = new_id[at(node.colocated_with)];
  }
  for (const Endpoint feed : feeds) pruned.feeds.push_back({new_id[at(feed.node)], feed.index});
  for (const Endpoint fetch : fetches) pruned.fetches.push_back({new_id[at(fetch.node)], fetch.index});
  for (const NodeId target : targets) pruned.targets.push_back(new_id[at(target)]);
  return pruned;
}

}  // namespace detail

DFLOW_INLINE StepGraph prune(const GraphStore& graph, std::span<const Endpoint> feeds, std::span<const Endpoint> fetches,
                             std::span<const NodeId> targets) {
  const std::shared_lock lock(graph.mutex);
  return detail::prune_nodes(graph.nodes, feeds, fetches, targets, [](const Node& node) { return node; });
}

DFLOW_INLINE StepGraph prune(StepGraph graph) {
  const std::vector<Endpoint> feeds = std::move(graph.feeds), fetches = std::move(graph.fetches);
  const std::vector<NodeId> targets = std::move(graph.targets);
  return detail::prune_nodes(graph.nodes, feeds, fetches, targets, [](Node& node) { return std::move(node); });
}

}  // namespace dflow
