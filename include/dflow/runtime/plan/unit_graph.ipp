#pragma once

#include <dflow/runtime/plan/plan.hpp>
#include <dflow/runtime/plan/plan_units.hpp>
#include <dflow/runtime/plan/unit_graph.hpp>

#include <algorithm>
#include <utility>

namespace dflow::detail {

/// The material of units: late feeds, then the nodes, without their producers.
inline std::vector<UnitNode> unit_nodes(const NodeKernels& kernels, const PlanProducers& producers) {
  std::vector<UnitNode> nodes(producers.num_late_feeds() + kernels.kernels.size());
  for (std::size_t f = 0; f < producers.num_late_feeds(); ++f) nodes[f].runs = nodes[f].is_async = true;
  for (const StepNodeId id : kernels.kernels.indices()) {
    if (!kernels.runs(id)) continue;
    UnitNode& node = nodes[producers.position_of(id)];
    node.runs = true;
    node.is_async = kernels.kernels[id]->is_async();
    node.splits = kernels.kernels[id]->traits().splits;
    node.cost_ns = kernels.cost_ns[id];
  }
  return nodes;
}

/// All that a node reads or makes is known to be small.
inline bool is_brief(const StepGraph& graph, const NodeKernels& kernels, StepNodeId id) {
  constexpr std::int64_t small = 16384;
  const KernelEntry* const entry = kernels.entries[id];
  if (calls_functions(graph.node(id).op->role)) return false;
  if (entry == nullptr) return true;  // a constant's place
  if (!entry->is_trusted || kernels.kernels[id]->cost_ns() <= 0) return false;
  const auto is_small = [](const PartialShape& shape) {
    return shape.is_fully_defined() && shape.to_shape().num_elements() <= small;
  };
  const StepNode& node = graph.node(id);
  for (const StepEndpoint input : graph.inputs_of(node)) {
    if (!is_small(graph.output(input).shape)) return false;
  }
  return std::all_of(node->outputs.begin(), node->outputs.end(),
                     [&](const OutputInfo& output) { return is_small(output.shape); });
}

inline void find_brief_units(PlanData& plan, const NodeKernels& kernels, const UnitOfNode& unit_of) {
  if (plan.device->is_asynchronous) return;
  IndexedVector<UnitId, double> cost_ns(plan.units.size());
  for (PlanUnit& unit : plan.units) unit.is_brief = !unit.is_async && !unit.is_feed;
  for (const StepNodeId id : unit_of.indices()) {
    const UnitId unit = unit_of[id];
    if (!unit.is_valid()) continue;
    cost_ns[unit] += kernels.cost_ns[id];
    plan.units[unit].is_brief &= is_brief(plan.graph, kernels, id) && cost_ns[unit] < worth_a_thread_ns;
  }
}

UnitOfNode group_nodes(PlanData& plan, const NodeKernels& kernels, const PlanProducers& producers,
                       const PlanOptions& options) {
  const int num_threads = options.num_threads > 0 ? options.num_threads : plan.device->pool->num_threads();
  std::vector<UnitNode> nodes = unit_nodes(kernels, producers);
  std::vector<std::int32_t> waited_for;
  if (!is_sequential(nodes, options.inter_op, num_threads)) {
    for (const StepNodeId id : plan.graph.nodes.indices()) {
      UnitNode& node = nodes[producers.position_of(id)];
      node.producer_begin = static_cast<std::int32_t>(waited_for.size());
      if (node.runs) producers.for_each(id, [&](std::int32_t producer) { waited_for.push_back(producer); });
      node.producer_end = static_cast<std::int32_t>(waited_for.size());
    }
  }
  const Units formed = form_units(nodes, waited_for, options.inter_op, num_threads);
  plan.is_sequential = formed.is_sequential;
  plan.units.resize(formed.units.size());
  for (const UnitId unit : plan.units.indices()) {
    plan.units[unit].is_async = formed.units[unit].is_async;
    plan.units[unit].is_expensive = formed.units[unit].is_expensive;
  }
  for (std::size_t f = 0; f < producers.num_late_feeds(); ++f) {
    plan.units[formed.unit_of[f]].is_feed = true;
    plan.feed_units.push_back(formed.unit_of[f]);
  }
  UnitOfNode unit_of;
  unit_of.assign(formed.unit_of.begin() + static_cast<std::ptrdiff_t>(producers.num_late_feeds()),
                 formed.unit_of.end());
  for (const StepNodeId id : unit_of.indices()) {
    if (kernels.runs(id) && kernels.kernels[id]->traits().nests) plan.units[unit_of[id]].is_nested = true;
  }
  find_brief_units(plan, kernels, unit_of);
  return unit_of;
}

void link_units(PlanData& plan, const PlanProducers& producers, const UnitOfNode& unit_of) {
  IndexedVector<UnitId, PlanUnit>& units = plan.units;
  std::vector<std::pair<UnitId, UnitId>> edges;
  for (const StepNodeId id : unit_of.indices()) {
    if (units.size() <= 1) break;
    if (!unit_of[id].is_valid()) continue;
    producers.for_each(id, [&](std::int32_t producer) {
      const UnitId from = producers.is_feed(producer) ? plan.feed_units[static_cast<std::size_t>(producer)]
                                                      : unit_of[producers.node_at(producer)];
      if (from != unit_of[id]) edges.emplace_back(from, unit_of[id]);
    });
  }
  // By producer, asynchronous consumers first.
  std::sort(edges.begin(), edges.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    const bool a_waits = units[a.second].is_async, b_waits = units[b.second].is_async;
    return a_waits != b_waits ? a_waits : a.second < b.second;
  });
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  plan.unit_consumers.reserve(edges.size());
  std::size_t e = 0;
  for (const UnitId unit : units.indices()) {
    units[unit].consumer_begin = static_cast<std::int32_t>(plan.unit_consumers.size());
    for (; e < edges.size() && edges[e].first == unit; ++e) {
      plan.unit_consumers.push_back(edges[e].second);
      ++units[edges[e].second].pending;
    }
    units[unit].consumer_end = static_cast<std::int32_t>(plan.unit_consumers.size());
  }
  for (const bool is_async : {true, false}) {
    for (const UnitId id : units.indices()) {
      const PlanUnit& unit = units[id];
      if (unit.pending == 0 && !unit.is_feed && unit.is_async == is_async) plan.first_units.push_back(id);
    }
  }
}

void place_fetches(PlanData& plan, const PlanSlots& slots, const UnitOfNode& unit_of) {
  std::vector<std::pair<UnitId, std::size_t>> made;  // the number of the fetch
  for (std::size_t f = 0; f < plan.graph.fetches.size(); ++f) {
    const StepEndpoint fetch = plan.graph.fetches[f];
    const std::int32_t feed = slots.feeds.find(fetch);
    const UnitId unit = feed >= 0 ? plan.feed_units[static_cast<std::size_t>(feed)] : unit_of[fetch.node];
    plan.fetch_units.push_back(unit);
    if (unit.is_valid()) made.emplace_back(unit, f);
  }
  std::sort(made.begin(), made.end());
  std::size_t m = 0;
  for (const UnitId id : plan.units.indices()) {
    PlanUnit& unit = plan.units[id];
    unit.fetch_begin = static_cast<std::int32_t>(plan.unit_fetches.size());
    for (; m < made.size() && made[m].first == id; ++m) plan.unit_fetches.push_back(made[m].second);
    unit.fetch_end = static_cast<std::int32_t>(plan.unit_fetches.size());
  }
}

}  // namespace dflow::detail
