#pragma once

#include <dflow/graph/frame_layout.hpp>
#include <dflow/graph/step_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow::detail {

/// Finds the conditions under which a tensor of a step is alive: sides of Switches, by the edges that they read.
class Aliveness {
 public:
  /// A side of a Switch, or something not known: of no edge.
  struct Side {
    StepEndpoint read;
    std::int32_t side = 0;
    friend bool operator==(const Side&, const Side&) = default;
    friend bool operator<(const Side& a, const Side& b) {
      return std::tie(a.read.node, a.read.index, a.side) < std::tie(b.read.node, b.read.index, b.side);
    }
  };
  using Sides = std::vector<Side>;  ///< in order; alive if all of them are taken

  /// Keeps both.
  Aliveness(const StepGraph& step, const FrameLayout& layout) : step_(step), layout_(layout), of_(step.nodes.size()) {}

  /// In the order of the nodes.
  void visit(StepNodeId id) {
    const StepNode& node = step_.node(id);
    if (node.is_fed_only) return;
    if (node.op->role == OpRole::merge) {
      of_[id] = of_merge(node);
    } else if (node.op->role == OpRole::exit) {
      of_[id] = outside_of_frame(id, of_waited_for(node));
    } else {
      of_[id] = of_waited_for(node);
      if (gives_dead(step_, node)) add(of_[id], {Side{}});
    }
  }
  /// Whether the node is a call that may have dead results.
  static bool gives_dead(const StepGraph& step, const StepNode& node) {
    const StepCall* const call = step.call_of(node);
    return call != nullptr && std::any_of(call->bodies.begin(), call->bodies.end(),
                                          [](const auto& body) { return body != nullptr && body->gives_dead; });
  }
  bool may_be_dead(StepEndpoint edge) const { return !of(edge).empty(); }
  bool may_be_dead(StepNodeId node) const { return !of_[node].empty(); }

  const Sides& of(StepNodeId node) const { return of_[node]; }
  Sides of(StepEndpoint edge) const {
    const StepNode& node = step_.node(edge.node);
    Sides sides = of_[edge.node];
    if (node.op->role == OpRole::switch_op && !node.is_fed_only) {
      add(sides, {Side{step_.inputs_of(node)[1], edge.index}});
    }
    return sides;
  }
  /// The sides that one has and the other has not.
  static Sides difference(const Sides& a, const Sides& b) {
    Sides differs;
    std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(differs));
    return differs;
  }

  /// The sides of all inputs and controls, without the node's own effect.
  Sides of_waited_for(const StepNode& node) const {
    Sides sides;
    for (const StepEndpoint input : step_.inputs_of(node)) add(sides, of(input));
    for (const StepNodeId control : step_.controls_of(node)) {
      if (control.is_valid()) add(sides, of_[control]);
    }
    return sides;
  }

 private:
  static constexpr std::size_t most = 32;

  static void add(Sides& to, const Sides& sides) {
    if (sides.empty()) return;
    Sides both;
    std::set_union(to.begin(), to.end(), sides.begin(), sides.end(), std::back_inserter(both));
    to = both.size() > most ? Sides{Side{}} : std::move(both);
  }

  /// The sides of an edge that leaves a frame when the frame's LoopCond says that it ends, which each frame does. An
  /// edge that leaves otherwise may never leave.
  Sides outside_of_frame(StepNodeId exit, const Sides& inside) const {
    Sides outside;
    for (const Side& side : inside) {
      const bool is_known = side.read.node.is_valid();
      if (!is_known || layout_.gives_to[side.read.node] != layout_.runs_in[exit]) {
        outside.push_back(side);
      } else if (step_.node(side.read.node).op->role != OpRole::loop_cond || side.side != 0) {
        return {Side{}};
      }
    }
    return outside;
  }

  Sides of_merge(const StepNode& node) const {
    const std::span<const StepEndpoint> inputs = step_.inputs_of(node);
    Sides a = of(inputs[0]);
    if (inputs.size() == 1) return a;
    if (inputs.size() == 2) {
      const Sides b = of(inputs[1]);
      Sides rest;
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
      const Sides differs = difference(a, b);
      if (a.size() == rest.size() || b.size() == rest.size()) return rest;
      if (differs.size() == 2 && differs[0].read == differs[1].read) return rest;
    }
    const bool is_alive =
        std::any_of(inputs.begin(), inputs.end(), [&](StepEndpoint input) { return of(input).empty(); });
    return is_alive ? Sides() : Sides{Side{}};
  }

  const StepGraph& step_;
  const FrameLayout& layout_;
  IndexedVector<StepNodeId, Sides> of_;
};

}  // namespace dflow::detail
