#pragma once

#include <dflow/base/position_table.hpp>
#include <dflow/runtime/plan/plan_joins.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>

namespace dflow::detail {

namespace joins {

using Candidates = IndexedVector<StepNodeId, PlanJoins::Candidate>;
using UnitOf = IndexedVector<StepNodeId, UnitId>;

/// Calls `see` for each node of its own unit that a node waits for.
template <class F>
void for_each_needed(const StepGraph& graph, const UnitOf& unit_of, StepNodeId id, F&& see) {
  const StepNode& node = graph.node(id);
  const auto see_if_here = [&](StepNodeId source) {
    if (source.is_valid() && unit_of[source] == unit_of[id]) see(source);
  };
  for (const StepEndpoint input : graph.inputs_of(node)) see_if_here(input.node);
  for (const StepNodeId control : graph.controls_of(node)) see_if_here(control);
}

/// Puts candidates into groups, one after the other in the order of the step.
class Grouping {
 public:
  Grouping(const StepGraph& graph, const Candidates& candidates, const UnitOf& unit_of)
      : graph_(graph), candidates_(candidates), unit_of_(unit_of), level_(graph.nodes.size()) {}

  std::vector<std::vector<StepNodeId>> run() {
    for (const StepNodeId id : graph_.nodes.indices()) {
      if (!unit_of_[id].is_valid()) continue;
      for_each_needed(graph_, unit_of_, id, [&](StepNodeId source) {
        level_[id] = std::max(level_[id], level_[source] + (is_candidate(source) ? 1 : 0));
      });
      if (is_candidate(id)) place(id);
    }
    std::vector<std::vector<StepNodeId>> joined;
    for (Group& group : groups_) {
      if (group.nodes.size() > 1) joined.push_back(std::move(group.nodes));
    }
    return joined;
  }

 private:
  struct Group {
    std::vector<StepNodeId> nodes;
    std::int64_t held_bytes = 0;
  };

  bool is_candidate(StepNodeId id) const { return candidates_[id].kernel != nullptr; }

  void place(StepNodeId id) {
    const auto [kernel, bytes] = candidates_[id];
    std::vector<std::size_t>& alike = open_[hash_of(id)];
    const auto found = std::find_if(alike.begin(), alike.end(),
                                    [&](std::size_t group) { return may_join(id, groups_[group].nodes.front()); });
    if (found == alike.end() || groups_[*found].held_bytes + bytes > kernel->max_held_bytes) {
      if (found != alike.end()) alike.erase(found);  // it is full
      alike.push_back(groups_.size());
      groups_.push_back({{id}, bytes});
      return;
    }
    groups_[*found].nodes.push_back(id);
    groups_[*found].held_bytes += bytes;
  }

  std::uint64_t hash_of(StepNodeId id) const {
    const StepNode& node = graph_.node(id);
    std::uint64_t hash = reinterpret_cast<std::uintptr_t>(node.op);
    for (std::size_t t = 0; t < node->types.size; ++t)
      hash = mix_hash(hash, static_cast<std::uint64_t>(node->types[t]));
    hash = mix_hash(hash, static_cast<std::uint64_t>(unit_of_[id].value()));
    hash = mix_hash(hash, static_cast<std::uint64_t>(level_[id]));
    for_each_same_input(id, [&](StepEndpoint input) { hash = mix_hash(hash, EndpointHash{}(input)); });
    return hash;
  }

  bool may_join(StepNodeId id, StepNodeId other) const {
    const StepNode &a = graph_.node(id), &b = graph_.node(other);
    if (a.op != b.op || !(a->types == b->types) || a.num_inputs != b.num_inputs || unit_of_[id] != unit_of_[other] ||
        level_[id] != level_[other] || candidates_[id].kernel != candidates_[other].kernel) {
      return false;
    }
    std::vector<StepEndpoint> of_other;
    for_each_same_input(other, [&](StepEndpoint input) { of_other.push_back(input); });
    std::size_t i = 0;
    bool are_same = true;
    for_each_same_input(id, [&](StepEndpoint input) { are_same = are_same && input == of_other[i++]; });
    return are_same && same_attrs(*a, *b);
  }

  template <class F>
  void for_each_same_input(StepNodeId id, F&& see) const {
    const std::span<const StepEndpoint> inputs = graph_.inputs_of(graph_.node(id));
    for (std::size_t i = 0; i < inputs.size() && i < 64; ++i) {
      if ((candidates_[id].kernel->same_inputs >> i & 1u) != 0) see(inputs[i]);
    }
  }

  const StepGraph& graph_;
  const Candidates& candidates_;
  const UnitOf& unit_of_;
  IndexedVector<StepNodeId, std::int32_t> level_;  ///< candidates before it in its unit, on the longest way
  std::vector<Group> groups_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> open_;
};

/// The order of the step, except that a group comes at the place of its last node, and the nodes that wait for it come
/// later.
std::vector<StepNodeId> order_of(const StepGraph& graph, const PlanJoins& joins, const UnitOf& unit_of) {
  const auto stands_for = [&](StepNodeId id) {
    const std::int32_t group = joins.group_of[id];
    return group < 0 ? id : joins.groups[static_cast<std::size_t>(group)].back();
  };
  IndexedVector<StepNodeId, std::int32_t> pending(graph.nodes.size());
  IndexedVector<StepNodeId, std::vector<StepNodeId>> waiting(graph.nodes.size());
  for (const StepNodeId id : graph.nodes.indices()) {
    if (!unit_of[id].is_valid()) continue;
    for_each_needed(graph, unit_of, id, [&](StepNodeId source) {
      waiting[stands_for(source)].push_back(stands_for(id));
      ++pending[stands_for(id)];
    });
  }
  std::priority_queue<StepNodeId, std::vector<StepNodeId>, std::greater<>> ready;
  for (const StepNodeId id : graph.nodes.indices()) {
    if (unit_of[id].is_valid() && stands_for(id) == id && pending[id] == 0) ready.push(id);
  }
  std::vector<StepNodeId> order;
  while (!ready.empty()) {
    const StepNodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (const StepNodeId reader : waiting[id]) {
      if (--pending[reader] == 0) ready.push(reader);
    }
  }
  return order;
}

}  // namespace joins

PlanJoins PlanJoins::find(const StepGraph& graph, const IndexedVector<StepNodeId, Candidate>& candidates,
                          const IndexedVector<StepNodeId, UnitId>& unit_of) {
  PlanJoins joins;
  joins.group_of.assign(graph.nodes.size(), -1);
  const auto may_be_joined = [](const Candidate& each) { return each.kernel != nullptr; };
  if (std::count_if(candidates.begin(), candidates.end(), may_be_joined) < 2) return joins;
  joins.groups = joins::Grouping(graph, candidates, unit_of).run();
  if (joins.groups.empty()) return joins;
  for (std::size_t g = 0; g < joins.groups.size(); ++g) {
    for (const StepNodeId id : joins.groups[g]) joins.group_of[id] = static_cast<std::int32_t>(g);
  }
  joins.order = joins::order_of(graph, joins, unit_of);
  return joins;
}

}  // namespace dflow::detail
