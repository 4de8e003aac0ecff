#pragma once

#include <dflow/graph/step_graph.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace dflow::detail {

/// The node may change state. It does not if a node before it in the step has found an error.
inline bool may_update(const StepGraph& graph, const StepNode& node) {
  const std::span<const StepEndpoint> inputs = graph.inputs_of(node);
  return node.op->role != OpRole::read_variable && std::any_of(inputs.begin(), inputs.end(), [&](StepEndpoint input) {
           return graph.output(input).dtype == DType::resource;
         });
}

/// Takes nodes one by one, in an order that puts repeating nodes together, as far as `is_ready` allows. Varying nodes
/// keep their order, and a node that may update state comes after all nodes that were before it.
template <class Repeats, class MayUpdate, class IsReady, class Take>
void gather_repeating(std::span<const StepNodeId> nodes, const Repeats& repeats, const MayUpdate& may_update,
                      const IsReady& is_ready, const Take& take) {
  constexpr int max_rounds = 64;
  std::vector<StepNodeId> rest(nodes.begin(), nodes.end()), left;
  for (int round = 0; round < max_rounds && !rest.empty(); ++round) {
    const bool takes_repeating = round % 2 != 0;
    bool is_held_up = false;
    left.clear();
    for (const StepNodeId id : rest) {
      const bool is_repeating = repeats(id);
      is_held_up |= !takes_repeating && !left.empty() && may_update(id);
      if (is_repeating == takes_repeating && !is_held_up && is_ready(id)) {
        take(id);
      } else {
        is_held_up |= !takes_repeating && !is_repeating;
        left.push_back(id);
      }
    }
    rest.swap(left);
  }
  for (const StepNodeId id : rest) take(id);
}

}  // namespace dflow::detail
