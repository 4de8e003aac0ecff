#pragma once

#include <dflow/runtime/plan/plan_records.hpp>
#include <dflow/runtime/plan/repeating.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace dflow::detail {

/// It issues the same work for the same shapes.
inline bool repeats(const StepGraph& graph, const NodeKernels& kernels, StepNodeId id) {
  const StepNode& node = graph.node(id);
  if (kernels.kernels[id]->is_async() || node.op->is_stateful) return false;
  if (kernels.entries[id] == nullptr) return !calls_functions(node.op->role);  // a constant's place
  const std::span<const StepEndpoint> inputs = graph.inputs_of(node);
  return kernels.kernels[id]->traits().repeats &&
         std::none_of(node->outputs.begin(), node->outputs.end(),
                      [](const OutputInfo& output) { return is_host_object(output.dtype); }) &&
         std::none_of(inputs.begin(), inputs.end(),
                      [&](StepEndpoint input) { return is_host_object(graph.output(input).dtype); });
}

void order_for_records(const PlanData& plan, NodeOrder& order, const JoinedNodes& joined, const NodeKernels& kernels,
                       const PlanProducers& producers) {
  const StepGraph& graph = plan.graph;
  IndexedVector<StepNodeId, bool> is_left(graph.nodes.size());  // of the unit that is being ordered, not placed yet
  const auto set_left = [&](StepNodeId id, bool value) {
    joined.for_each_member(id, [&](StepNodeId member) { is_left[member] = value; });
  };
  const auto is_ready = [&](StepNodeId id) {
    bool waits = false;
    joined.for_each_member(id, [&](StepNodeId member) {
      producers.for_each(member, [&](std::int32_t producer) {
        waits |= !producers.is_feed(producer) && is_left[producers.node_at(producer)];
      });
    });
    return !waits;
  };
  for (const PlanUnit& unit : plan.units) {
    const std::vector<StepNodeId> nodes(order.begin() + unit.node_begin.value(), order.begin() + unit.node_end.value());
    if (nodes.size() < plan.device->recorder->min_nodes()) continue;
    for (const StepNodeId id : nodes) set_left(id, true);
    PlanNodeId next = unit.node_begin;
    gather_repeating(
        nodes, [&](StepNodeId id) { return repeats(graph, kernels, id); },
        [&](StepNodeId id) { return may_update(graph, graph.node(id)); }, is_ready,
        [&](StepNodeId id) {
          order[next++] = id;
          set_left(id, false);
        });
  }
}

inline void record(PlanData& plan, const NodeOrder& order, const PlanSlots& slots, PlanNodeId begin, PlanNodeId end) {
  if (begin == end || static_cast<std::size_t>(end - begin) < plan.device->recorder->min_nodes()) return;
  Stretch stretch;
  enum class Made : std::uint8_t { before, here, on_host };
  std::map<SlotId, Made> made;  // the slots that it reads or writes
  for (const PlanNodeId p : IndexRange(begin, end)) {
    const PlanNode& node = plan.nodes[p];
    const std::span<const SlotId> inputs = plan.inputs_of(p);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (!made.emplace(inputs[k], Made::before).second) continue;
      (slots.wants_host(order[p], k) ? stretch.host_inputs : stretch.inputs).push_back(inputs[k]);
    }
    for (std::int32_t o = 0; o < node.wiring.num_outputs; ++o) {
      const bool is_on_host = node.wiring.host_outputs != nullptr && node.wiring.host_outputs[o] != 0;
      made[node.wiring.first_output + o] = is_on_host ? Made::on_host : Made::here;
    }
    for (std::int32_t r = node.release_begin; r < node.release_end; ++r) {
      made[plan.released[static_cast<std::size_t>(r)]] = Made::before;
    }
  }
  for (const auto& [slot, where] : made) {
    if (where != Made::before) (where == Made::here ? stretch.outputs : stretch.host_outputs).push_back(slot);
  }
  plan.recorded.push_back({begin, end, plan.device->recorder->record(std::move(stretch))});
}

void record_stretches(PlanData& plan, const NodeOrder& order, const NodeKernels& kernels, const PlanSlots& slots) {
  for (const PlanUnit& unit : plan.units) {
    PlanNodeId begin = unit.node_begin;
    for (const PlanNodeId p : IndexRange(unit.node_begin, unit.node_end)) {
      if (repeats(plan.graph, kernels, order[p])) continue;
      record(plan, order, slots, begin, p);
      begin = p + 1;
    }
    record(plan, order, slots, begin, unit.node_end);
  }
}

}  // namespace dflow::detail
