#pragma once

#include <dflow/runtime/plan/joined_nodes.hpp>
#include <dflow/runtime/plan/node_order.hpp>
#include <dflow/runtime/plan/plan.hpp>
#include <dflow/runtime/plan/plan_kernels.hpp>
#include <dflow/runtime/plan/plan_producers.hpp>
#include <dflow/runtime/plan/plan_records.hpp>
#include <dflow/runtime/plan/plan_releases.hpp>
#include <dflow/runtime/plan/plan_slots.hpp>
#include <dflow/runtime/plan/unit_graph.hpp>

#include <utility>

namespace dflow {

std::shared_ptr<AnyKernel> KeptKernels::find(std::string_view device, std::string_view node) const {
  const std::lock_guard lock(mutex_);
  const auto kernels = devices_.find(device);
  if (kernels == devices_.end()) return nullptr;
  const auto found = kernels->second.find(node);
  return found == kernels->second.end() ? nullptr : found->second;
}

std::shared_ptr<AnyKernel> KeptKernels::keep(std::string_view device, std::string_view node,
                                             std::shared_ptr<AnyKernel> kernel) {
  const std::lock_guard lock(mutex_);
  return devices_[std::string(device)].try_emplace(std::string(node), std::move(kernel)).first->second;
}

std::shared_ptr<const Plan> Plan::compile(StepGraph graph, const PlanOptions& options) {
  std::shared_ptr<Plan> compiled(new Plan);
  detail::PlanData& plan = compiled->data_;
  plan.device_owner = options.device_owner;
  plan.graph = std::move(graph);
  plan.device = options.device;
  plan.streams = options.streams;
  // Everything that follows relies on it. Loops are nodes that call plans, or a graph for a loop of its own.
  require_topological_order(plan.graph);

  detail::PlanKernels maker(plan.graph, *plan.device, options);
  const detail::NodeKernels kernels = maker.make_all();
  plan.carries_dead = kernels.carries_dead;
  plan.nests = kernels.nests;
  const detail::PlanSlots slots = detail::assign_slots(plan, kernels, options);

  const detail::PlanProducers producers(plan, kernels, slots);
  const detail::UnitOfNode unit_of = detail::group_nodes(plan, kernels, producers, options);
  const detail::JoinedNodes joined = detail::join_nodes(plan, maker, kernels, unit_of);
  detail::NodeOrder order = detail::order_nodes(plan, joined, unit_of);
  if (plan.records()) detail::order_for_records(plan, order, joined, kernels, producers);
  detail::wire_nodes(plan, order, joined, kernels, slots);
  detail::link_units(plan, producers, unit_of);
  if (plan.streams) detail::place_fetches(plan, slots, unit_of);

  detail::plan_releases(plan, order, unit_of, options);
  detail::reuse_slots(plan);
  detail::list_cleared_slots(plan, options);
  if (plan.records()) detail::record_stretches(plan, order, kernels, slots);

  plan.kernels = std::move(maker.made);
  plan.kept_kernels = std::move(maker.kept);
  return compiled;
}

}  // namespace dflow
