#pragma once

#include <dflow/kernels/contract/host_arguments.hpp>
#include <dflow/runtime/plan/node_order.hpp>

namespace dflow::detail {

NodeOrder order_nodes(PlanData& plan, const JoinedNodes& joined, const UnitOfNode& unit_of) {
  // The nodes that run, in a topological order, with one node for each group.
  const auto for_each_in_order = [&](const auto& visit) {
    if (!joined.joins.groups.empty()) {
      for (const StepNodeId id : joined.joins.order) visit(id);
      return;
    }
    for (const StepNodeId id : unit_of.indices()) {
      if (unit_of[id].is_valid()) visit(id);
    }
  };
  IndexedVector<UnitId, PlanNodeId> next(plan.units.size() + 1, PlanNodeId(0));
  for_each_in_order([&](StepNodeId id) { ++next[unit_of[id] + 1]; });
  for (const UnitId unit : plan.units.indices()) {
    next[unit + 1] += next[unit].value();
    plan.units[unit].node_begin = next[unit];
    plan.units[unit].node_end = next[unit + 1];
  }
  NodeOrder order(next.back().position());
  for_each_in_order([&](StepNodeId id) { order[next[unit_of[id]]++] = id; });
  return order;
}

/// Lists which outputs are in host memory and returns, for each node that has any, where they begin in the list; -1 for
/// the others.
inline IndexedVector<StepNodeId, std::int32_t> find_host_outputs(PlanData& plan, const NodeKernels& kernels) {
  IndexedVector<StepNodeId, std::int32_t> first;
  first.assign(plan.graph.nodes.size(), -1);
  if (plan.device->memory == nullptr) return first;
  for (const StepNodeId id : plan.graph.nodes.indices()) {
    if (kernels.entries[id] == nullptr) continue;
    const std::vector<bool> on_host = host_outputs_of(*plan.graph.node(id), *kernels.entries[id]);
    if (!on_host.empty()) first[id] = static_cast<std::int32_t>(plan.host_outputs.size());
    plan.host_outputs.insert(plan.host_outputs.end(), on_host.begin(), on_host.end());
  }
  return first;
}

/// Puts the slots of a node's inputs at the end of the plan's.
inline void append_inputs(PlanData& plan, const PlanSlots& slots, StepNodeId id, KernelContext::Wiring& wiring) {
  const std::span<const StepEndpoint> inputs = plan.graph.inputs_of(plan.graph.node(id));
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    plan.input_slots.push_back(slots.of(inputs[k], slots.wants_host(id, k)));
  }
  wiring.num_inputs += static_cast<std::int32_t>(inputs.size());
}

inline PlanNode wire_group(PlanData& plan, const std::vector<StepNodeId>& group, const JoinedNodes::Joined& joined,
                           const PlanSlots& slots) {
  PlanNode planned;
  planned.kernel = joined.kernel;
  planned.cost_ns = joined.cost_ns;
  planned.is_trusted = true;  // there are no outputs
  planned.wiring.node = joined.node;
  planned.wiring.inputs = plan.input_slots.data() + plan.input_slots.size();
  planned.wiring.first_output = slots.first_output[group.back()];
  for (const StepNodeId id : group) append_inputs(plan, slots, id, planned.wiring);
  return planned;
}

/// `host_outputs` is the place of the node's first among the plan's; -1: it has none.
inline PlanNode wire(PlanData& plan, StepNodeId id, const NodeKernels& kernels, const PlanSlots& slots,
                     std::int32_t host_outputs) {
  const StepNode& node = plan.graph.node(id);
  const KernelEntry* const entry = kernels.entries[id];
  PlanNode planned;
  planned.kernel = kernels.kernels[id];
  planned.cost_ns = kernels.cost_ns[id];
  planned.wiring.node = node.node;
  planned.wiring.inputs = plan.input_slots.data() + plan.input_slots.size();
  planned.wiring.first_output = slots.first_output[id];
  planned.is_trusted = true;
  const bool is_call = calls_functions(node.op->role);
  if (entry == nullptr && !is_call) return planned;  // a constant, whose slot is set
  planned.wiring.num_outputs = node.num_outputs;
  if (host_outputs >= 0) planned.wiring.host_outputs = plan.host_outputs.data() + host_outputs;
  planned.is_trusted = !is_call && entry->is_trusted;
  append_inputs(plan, slots, id, planned.wiring);
  return planned;
}

void wire_nodes(PlanData& plan, const NodeOrder& order, const JoinedNodes& joined, const NodeKernels& kernels,
                const PlanSlots& slots) {
  std::size_t num_inputs = 0;
  for (const StepNodeId id : order) {
    joined.for_each_member(id, [&](StepNodeId member) { num_inputs += plan.graph.node(member).num_inputs; });
  }
  plan.input_slots.reserve(num_inputs);  // wirings point into it
  const IndexedVector<StepNodeId, std::int32_t> host_outputs = find_host_outputs(plan, kernels);
  plan.nodes.reserve(order.size());
  for (const StepNodeId id : order) {
    const std::vector<StepNodeId>* const group = joined.group_of(id);
    plan.nodes.push_back(group != nullptr ? wire_group(plan, *group, joined.joined_of(id), slots)
                                          : wire(plan, id, kernels, slots, host_outputs[id]));
  }
}

}  // namespace dflow::detail
