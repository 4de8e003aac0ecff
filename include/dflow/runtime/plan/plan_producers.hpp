#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/runtime/plan/plan_data.hpp>
#include <dflow/runtime/plan/plan_kernels.hpp>
#include <dflow/runtime/plan/plan_slots.hpp>

#include <cstddef>
#include <cstdint>

namespace dflow::detail {

/// The producers that nodes of a plan wait for: nodes that run, and late feeds if the plan streams. Both are numbered
/// by position, the late feeds first.
///
/// Thread safety: a view of a graph, kernels and slots, which must outlive it.
class PlanProducers {
 public:
  PlanProducers(const PlanData& plan, const NodeKernels& kernels, const PlanSlots& slots)
      : graph_(plan.graph),
        kernels_(kernels),
        slots_(slots),
        num_late_feeds_(plan.streams ? plan.graph.feeds.size() : 0) {}

  std::size_t num_late_feeds() const noexcept { return num_late_feeds_; }
  bool is_feed(std::int32_t position) const noexcept { return static_cast<std::size_t>(position) < num_late_feeds_; }
  std::size_t position_of(StepNodeId id) const noexcept { return num_late_feeds_ + id.position(); }
  /// Precondition: it is no feed's.
  StepNodeId node_at(std::int32_t position) const noexcept {
    return StepNodeId(static_cast<std::size_t>(position) - num_late_feeds_);
  }

  /// Calls `visit` with the position of each producer of a node, of some more than once.
  template <class F>
  void for_each(StepNodeId id, F&& visit) const {
    const StepNode& node = graph_.node(id);
    for (const StepEndpoint input : graph_.inputs_of(node)) {
      if (const std::int32_t feed = slots_.feeds.find(input); feed >= 0) {
        if (num_late_feeds_ != 0) visit(feed);
      } else if (kernels_.runs(input.node)) {
        visit(static_cast<std::int32_t>(position_of(input.node)));
      }
    }
    for (const StepNodeId control : graph_.controls_of(node)) {
      if (kernels_.runs(control)) visit(static_cast<std::int32_t>(position_of(control)));
    }
  }

 private:
  const StepGraph& graph_;
  const NodeKernels& kernels_;
  const PlanSlots& slots_;
  std::size_t num_late_feeds_;
};

}  // namespace dflow::detail
