#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/runtime/plan/joined_nodes.hpp>

namespace dflow::detail {

inline JoinedNodes::Joined join(PlanData& plan, PlanKernels& maker, const NodeKernels& kernels,
                                const std::vector<StepNodeId>& group) {
  JoinedNodes::Joined joined;
  std::vector<std::vector<OutputInfo>> inputs(group.size());
  std::vector<KernelInit> inits;
  for (std::size_t m = 0; m < group.size(); ++m) {
    const StepNode& node = plan.graph.node(group[m]);
    for (const StepEndpoint input : plan.graph.inputs_of(node)) inputs[m].push_back(plan.graph.output(input));
    inits.push_back({*node, inputs[m], *plan.device, kernels.entries[group[m]]});
    joined.cost_ns += kernels.cost_ns[group[m]];
  }
  const Node& first = *plan.graph.node(group.front());
  Node& node = plan.joint_nodes.emplace_back();
  node.op = first.op;
  node.name = str_cat(without_copy(first.name), " + ", group.size() - 1, " more");
  node.types = first.types;
  node.attrs = first.attrs;
  node.where = first.where;
  joined.node = &node;
  joined.kernel = &maker.own(kernels.joinable[group.front()].kernel->make(inits));
  return joined;
}

JoinedNodes join_nodes(PlanData& plan, PlanKernels& maker, const NodeKernels& kernels, const UnitOfNode& unit_of) {
  JoinedNodes all;
  all.joins = PlanJoins::find(plan.graph, kernels.joinable, unit_of);
  all.joined.reserve(all.joins.groups.size());
  for (const std::vector<StepNodeId>& group : all.joins.groups) all.joined.push_back(join(plan, maker, kernels, group));
  return all;
}

}  // namespace dflow::detail
