#pragma once

#include <dflow/graph/step_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace dflow::detail {

/// A constant, or an edge that is given from outside, is on no device.
inline bool is_on_device(const StepNode& node) { return !node.is_fed_only && node.op->role != OpRole::constant; }

/// Bodies of a step that have been looked into.
class SpanFinder {
 public:
  bool spans(const StepGraph& graph, const StepNode& node) {
    const StepCall* const call = graph.call_of(node);
    if (call == nullptr) return false;
    return std::any_of(call->bodies.begin(), call->bodies.end(),
                       [&](const auto& body) { return body != nullptr && leaves(*body, node.placed_on); });
  }

 private:
  /// Whether something of the body is elsewhere.
  bool leaves(const StepGraph& body, std::int32_t device) {
    const auto [known, is_new] = leaves_.try_emplace({&body, device}, false);
    if (!is_new) return known->second;
    const bool does = std::any_of(body.nodes.begin(), body.nodes.end(), [&](const StepNode& node) {
      return is_on_device(node) && (node.placed_on != device || spans(body, node));
    });
    return leaves_[{&body, device}] = does;
  }

  std::map<std::pair<const StepGraph*, std::int32_t>, bool> leaves_;
};

}  // namespace dflow::detail
