#pragma once

#include <dflow/kernels/contract/host_arguments.hpp>
#include <dflow/runtime/plan/plan.hpp>
#include <dflow/runtime/plan/plan_constants.hpp>
#include <dflow/runtime/plan/plan_slots.hpp>

#include <utility>

namespace dflow::detail {

SlotId PlanSlots::of(StepEndpoint edge, bool on_host) const {
  if (const std::int32_t feed = feeds.find(edge); feed >= 0) return first_feed + feed;
  if (on_host) {
    if (const auto found = host_constants.find(edge.node); found != host_constants.end()) return found->second;
  }
  return first_output[edge.node] + edge.index;
}

/// Copies constants to the device, all at once, and puts the copies in the slots of their nodes.
inline void bring_to_device(PlanData& plan, const PlanSlots& slots, const std::vector<StepNodeId>& ids,
                            const std::vector<AnyTensor>& values, const PlanOptions& options) {
  if (options.check != nullptr) (*options.check)();
  BroughtConstants brought =
      bring_constants(*plan.device, values, options.constants, {options.clock, options.deadline, options.stop});
  if (brought.failed >= 0) {
    const Node& node = *plan.graph.node(ids[static_cast<std::size_t>(brought.failed)]);
    throw_error(
        brought.status.with_node(node.op->name, node.name).with_device(plan.device->name).with_location(node.where));
  }
  throw_if_error(brought.status);
  for (std::size_t k = 0; k < ids.size(); ++k) {
    plan.constants.emplace_back(slots.first_output[ids[k]], brought.constants[k]->here);
  }
  plan.shared_constants = std::move(brought.constants);
}

/// Marks the inputs that are wanted in host memory, and lists the nodes with an output there.
inline IndexedVector<StepNodeId, bool> find_host_inputs(const StepGraph& graph, const NodeKernels& kernels,
                                                        PlanSlots& slots) {
  IndexedVector<StepNodeId, bool> read_on_host(graph.nodes.size());
  slots.host_inputs.resize(graph.nodes.size());
  for (const StepNodeId id : graph.nodes.indices()) {
    const StepNode& node = graph.node(id);
    if (kernels.entries[id] != nullptr) slots.host_inputs[id] = host_inputs_of(*node, *kernels.entries[id]);
    const std::span<const StepEndpoint> inputs = graph.inputs_of(node);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (slots.wants_host(id, k)) read_on_host[inputs[k].node] = true;
    }
  }
  return read_on_host;
}

inline void place_constants(PlanData& plan, PlanSlots& slots, const NodeKernels& kernels, const PlanOptions& options) {
  const bool is_host = plan.device->memory == nullptr;
  IndexedVector<StepNodeId, bool> read_on_host;
  if (!is_host) read_on_host = find_host_inputs(plan.graph, kernels, slots);
  std::vector<StepNodeId> to_bring;
  std::vector<AnyTensor> values;
  for (const StepNodeId id : plan.graph.nodes.indices()) {
    check_in(options, plan.graph, id);
    const StepNode& node = plan.graph.node(id);
    if (node.op->role != OpRole::constant || node.is_fed_only) continue;
    AnyTensor value = constant_value(*node);
    if (!is_host && read_on_host[id]) {
      const SlotId slot(plan.num_slots++);
      slots.host_constants.emplace(id, slot);
      plan.constants.emplace_back(slot, value);
    }
    if (is_host || is_host_object(value.dtype())) {
      plan.constants.emplace_back(slots.first_output[id], std::move(value));
    } else {
      to_bring.push_back(id);
      values.push_back(std::move(value));
    }
  }
  if (!to_bring.empty()) bring_to_device(plan, slots, to_bring, values, options);
}

PlanSlots assign_slots(PlanData& plan, const NodeKernels& kernels, const PlanOptions& options) {
  const StepGraph& graph = plan.graph;
  PlanSlots slots;
  slots.first_output.resize(graph.nodes.size());
  slots.feeds = {graph.feeds, graph.nodes.size()};
  SlotId next(0);
  for (const StepNodeId id : graph.nodes.indices()) {
    slots.first_output[id] = next;
    next += graph.node(id).num_outputs;
  }
  slots.first_feed = next;
  for (std::size_t f = 0; f < graph.feeds.size(); ++f) plan.feed_slots.push_back(next++);
  plan.num_slots = next.position();
  place_constants(plan, slots, kernels, options);
  for (const StepEndpoint fetch : graph.fetches) plan.fetch_slots.push_back(slots.of(fetch, false));
  return slots;
}

}  // namespace dflow::detail
