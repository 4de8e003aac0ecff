#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/frame_layout.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/passes/frames.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// On what it depends that a tensor is alive: sides of Switches, by what they read.
class Aliveness {
 public:
  Aliveness(const StepGraph& step, const FrameLayout& layout) : step_(step), layout_(layout), of_(step.nodes.size()) {}

  /// In the order of the nodes.
  void visit(StepNodeId id) {
    const StepNode& node = step_.node(id);
    if (node.is_fed_only) return;
    if (node.op->role == OpRole::merge) {
      of_[id] = of_merge(node);
    } else if (node.op->role == OpRole::exit) {
      const FrameLayout::Frame& frame = layout_.frames[static_cast<std::size_t>(layout_.runs_in[id])];
      of_[id] = of_[frame.first];
    } else {
      for (const StepEndpoint input : step_.inputs_of(node)) add(of_[id], of(input));
      for (const StepNodeId control : step_.controls_of(node)) {
        if (control.is_valid()) add(of_[id], of_[control]);
      }
    }
  }
  bool may_be_dead(StepEndpoint edge) const { return !of(edge).empty(); }
  bool may_be_dead(StepNodeId node) const { return !of_[node].empty(); }

 private:
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
  static constexpr std::size_t most = 32;

  static void add(Sides& to, const Sides& sides) {
    if (sides.empty()) return;
    Sides both;
    std::set_union(to.begin(), to.end(), sides.begin(), sides.end(), std::back_inserter(both));
    to = both.size() > most ? Sides{Side{}} : std::move(both);
  }

  Sides of(StepEndpoint edge) const {
    const StepNode& node = step_.node(edge.node);
    Sides sides = of_[edge.node];
    if (node.op->role == OpRole::switch_op && !node.is_fed_only) {
      add(sides, {Side{step_.inputs_of(node)[1], edge.index}});
    }
    return sides;
  }

  Sides of_merge(const StepNode& node) const {
    const std::span<const StepEndpoint> inputs = step_.inputs_of(node);
    Sides a = of(inputs[0]);
    if (inputs.size() == 1) return a;
    if (inputs.size() == 2) {
      const Sides b = of(inputs[1]);
      Sides rest, differs;
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
      std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(differs));
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

class FrameFormer {
 public:
  explicit FrameFormer(StepGraph& step)
      : step_(step),
        feeds_(step.feeds, step.nodes.size()),
        layout_(lay_out_frames(step)),
        part_of_(step.nodes.size(), none) {}

  void form() {
    check_ends();
    find_members();
    join_members();
    for (const StepNodeId id : step_.nodes.indices()) {
      if (part_of_[id] != none) parts_[static_cast<std::size_t>(part_of_[id])].nodes.push_back(id);
    }
    find_edges();
    for (Part& part : parts_) fill(part);
    rebuild();
  }

 private:
  static constexpr std::ptrdiff_t none = -1;

  /// What becomes one node.
  struct Part {
    std::vector<StepNodeId> nodes;
    std::vector<StepEndpoint> inputs;  ///< from outside, by number
    std::vector<StepNodeId> controls;
    std::vector<StepEndpoint> outputs;  ///< that are read outside
    std::vector<StepNodeId> waited_for;
    StepGraph body;
    StepNodeId now;  ///< in the step as it is then
  };
  struct EdgeOrder {
    bool operator()(StepEndpoint a, StepEndpoint b) const noexcept {
      return std::tie(a.node, a.index) < std::tie(b.node, b.index);
    }
  };

  [[noreturn]] static void fail(const StepNode& node, std::string message) {
    throw_error(invalid_argument(std::move(message)).with_node(node.op->name, node->name).with_location(node->where));
  }

  bool is_raw(StepNodeId id) const { return passes_on(step_.node(id).op->role) && !step_.node(id).is_fed_only; }

  void check_ends() const {
    const auto require = [&](StepNodeId id, bool is_outside, const char* what) {
      if (!is_outside) fail(step_.node(id), str_cat("it is inside of a frame, and cannot be ", what));
    };
    for (const StepEndpoint fetch : step_.fetches) {
      if (!feeds_.contains(fetch)) require(fetch.node, layout_.gives_to[fetch.node] == 0, "fetched");
    }
    for (const StepNodeId target : step_.targets) require(target, layout_.runs_in[target] == 0, "run alone");
  }

  /// Calls `see(source)` for what the node waits for.
  template <class F>
  void for_each_source(StepNodeId id, F&& see) const {
    const StepNode& node = step_.node(id);
    for (const StepEndpoint input : step_.inputs_of(node)) {
      if (!feeds_.contains(input)) see(input.node);
    }
    for (const StepNodeId control : step_.controls_of(node)) {
      if (control.is_valid()) see(control);
    }
  }

  /// The raw nodes, what waits for something that may be dead, and what lies between any of these.
  void find_members() {
    Aliveness aliveness(step_, layout_);
    IndexedVector<StepNodeId, bool> is_anchor(step_.nodes.size()), is_behind(step_.nodes.size()),
        leads_on(step_.nodes.size());
    for (const StepNodeId id : step_.nodes.indices()) {
      aliveness.visit(id);
      const StepNode& node = step_.node(id);
      if (node.is_fed_only) continue;
      const std::span<const StepNodeId> controls = std::as_const(step_).controls_of(node);
      is_anchor[id] = is_raw(id) || std::any_of(controls.begin(), controls.end(), [&](StepNodeId control) {
                        return control.is_valid() && aliveness.may_be_dead(control);
                      });
      is_behind[id] = is_anchor[id];
      for_each_source(id, [&](StepNodeId source) { is_behind[id] = is_behind[id] || is_behind[source]; });
    }
    for (std::size_t i = step_.nodes.size(); i-- > 0;) {
      const StepNodeId id(i);
      leads_on[id] = leads_on[id] || is_anchor[id];
      if (leads_on[id] && is_behind[id]) part_of_[id] = 0;
      if (leads_on[id]) for_each_source(id, [&](StepNodeId source) { leads_on[source] = true; });
    }
  }

  void join_members() {
    std::vector<std::size_t> parent(step_.nodes.size());
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&](std::size_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (const StepNodeId id : step_.nodes.indices()) {
      if (part_of_[id] == none) continue;
      for_each_source(id, [&](StepNodeId source) {
        if (part_of_[source] != none) parent[root(source.position())] = root(id.position());
      });
    }
    std::map<std::size_t, std::ptrdiff_t> numbers;
    for (const StepNodeId id : step_.nodes.indices()) {
      if (part_of_[id] == none) continue;
      const auto next = static_cast<std::ptrdiff_t>(numbers.size());
      part_of_[id] = numbers.try_emplace(root(id.position()), next).first->second;
    }
    parts_.resize(numbers.size());
  }

  Part& part(StepNodeId id) { return parts_[static_cast<std::size_t>(part_of_[id])]; }

  void find_edges() {
    const auto read_outside = [&](StepEndpoint edge) {
      if (part_of_[edge.node] == none || feeds_.contains(edge)) return;
      if (output_.try_emplace(edge, part(edge.node).outputs.size()).second) part(edge.node).outputs.push_back(edge);
    };
    for (const StepNodeId id : step_.nodes.indices()) {
      const StepNode& node = step_.node(id);
      for (const StepEndpoint input : std::as_const(step_).inputs_of(node)) {
        if (part_of_[id] == none) read_outside(input);
      }
      for (const StepNodeId control : std::as_const(step_).controls_of(node)) {
        if (!control.is_valid()) continue;
        const bool is_outside = part_of_[control] == none;
        if (part_of_[id] != none && is_outside) part(id).controls.push_back(control);
        if (part_of_[id] == none && !is_outside) part(control).waited_for.push_back(control);
      }
    }
    for (const StepEndpoint fetch : step_.fetches) read_outside(fetch);
    for (const StepNodeId target : step_.targets) {
      if (part_of_[target] != none) part(target).waited_for.push_back(target);
    }
  }

  /// The nodes among themselves; what they read from outside is fed.
  void fill(Part& part) {
    StepGraph& body = part.body;
    body.graph = step_.graph;
    body.made = step_.made;
    IndexedVector<StepNodeId, StepNodeId> now(step_.nodes.size());
    const auto fed = [&](StepEndpoint edge) {
      StepNodeId& source = outside_[edge.node];
      if (!source.is_valid()) {
        StepNode bare = step_.node(edge.node);
        bare.is_fed_only = true;
        bare.call = -1;
        source = body.append(bare, {}, {});
      }
      const StepEndpoint here{source, edge.index};
      if (given_.try_emplace(edge, part.inputs.size()).second) {
        part.inputs.push_back(edge);
        body.feeds.push_back(here);
      }
      return here;
    };
    outside_.clear();
    given_.clear();
    std::vector<StepEndpoint> inputs;
    std::vector<StepNodeId> controls;
    for (const StepNodeId id : part.nodes) {
      const StepNode& node = step_.node(id);
      inputs.clear();
      controls.clear();
      for (const StepEndpoint input : std::as_const(step_).inputs_of(node)) {
        if (now[input.node].is_valid() && !feeds_.contains(input)) {
          inputs.push_back({now[input.node], input.index});
        } else if (layout_.is_everywhere[input.node] && !feeds_.contains(input)) {
          now[input.node] = body.append(step_.node(input.node), {}, {});
          inputs.push_back({now[input.node], input.index});
        } else {
          inputs.push_back(fed(input));
        }
      }
      for (const StepNodeId control : std::as_const(step_).controls_of(node)) {
        if (control.is_valid() && part_of_[control] != none) controls.push_back(now[control]);
      }
      StepNode here = node;
      if (const StepCall* call = step_.call_of(node)) {
        here.call = static_cast<std::int32_t>(body.calls.size());
        body.calls.push_back(std::make_shared<const StepCall>(*call));
      }
      now[id] = body.append(here, inputs, controls);
    }
    for (const StepEndpoint output : part.outputs) body.fetches.push_back({now[output.node], output.index});
    for (const StepNodeId id : part.waited_for) body.targets.push_back(now[id]);
  }

  // ---- the step again ----

  /// Nodes and parts in an order in which each comes after what it waits for.
  void rebuild() {
    StepGraph fresh;
    fresh.graph = step_.graph;
    fresh.made = step_.made;
    fresh.calls = step_.calls;
    fresh.recursion = step_.recursion;
    now_.assign(step_.nodes.size(), StepNodeId());
    for (const StepEndpoint feed : step_.feeds) {
      if (!is_bare(feed) || fed_there_.contains(feed.node)) continue;
      StepNode bare = step_.node(feed.node);
      bare.is_fed_only = true;
      fed_there_.emplace(feed.node, fresh.append(bare, {}, {}));
    }
    std::vector<StepNodeId> stack;
    for (const StepNodeId id : step_.nodes.indices()) {
      stack.push_back(id);
      while (!stack.empty()) {
        const StepNodeId top = stack.back();
        const std::size_t before = stack.size();
        if (is_there(top)) {
          stack.pop_back();
          continue;
        }
        for_each_needed(top, [&](StepNodeId source) {
          if (!is_there(source)) stack.push_back(source);
        });
        if (stack.size() > before) continue;
        stack.pop_back();
        part_of_[top] == none ? append_node(fresh, top) : append_part(fresh, part(top));
      }
    }
    for (const StepEndpoint feed : step_.feeds) fresh.feeds.push_back(edge(feed));
    for (const StepEndpoint fetch : step_.fetches) fresh.fetches.push_back(edge(fetch));
    for (const StepNodeId target : step_.targets) fresh.targets.push_back(node(target));
    step_ = std::move(fresh);
  }

  bool is_there(StepNodeId id) { return part_of_[id] == none ? now_[id].is_valid() : part(id).now.is_valid(); }

  template <class F>
  void for_each_needed(StepNodeId id, F&& see) {
    if (part_of_[id] == none) {
      for (const StepEndpoint input : std::as_const(step_).inputs_of(step_.node(id))) {
        if (!is_bare(input)) see(input.node);
      }
      for (const StepNodeId control : std::as_const(step_).controls_of(step_.node(id))) {
        if (control.is_valid()) see(control);
      }
      return;
    }
    for (const StepEndpoint input : part(id).inputs) {
      if (!is_bare(input)) see(input.node);
    }
    for (const StepNodeId control : part(id).controls) see(control);
  }

  /// A fed edge of a node that is in a part: a node of its own stands for it from now on.
  bool is_bare(StepEndpoint edge) const { return part_of_[edge.node] != none && feeds_.contains(edge); }

  StepEndpoint edge(StepEndpoint old) const {
    if (part_of_[old.node] == none) return {now_[old.node], old.index};
    if (feeds_.contains(old)) return {fed_there_.at(old.node), old.index};
    return {parts_[static_cast<std::size_t>(part_of_[old.node])].now, static_cast<std::int32_t>(output_.at(old))};
  }
  StepNodeId node(StepNodeId old) { return !old.is_valid() ? old : part_of_[old] == none ? now_[old] : part(old).now; }

  void append_node(StepGraph& fresh, StepNodeId id) {
    std::vector<StepEndpoint> inputs;
    std::vector<StepNodeId> controls;
    for (const StepEndpoint input : std::as_const(step_).inputs_of(step_.node(id))) inputs.push_back(edge(input));
    for (const StepNodeId control : std::as_const(step_).controls_of(step_.node(id))) controls.push_back(node(control));
    now_[id] = fresh.append(step_.node(id), inputs, controls);
  }

  void append_part(StepGraph& fresh, Part& part) {
    const StepNode& first =
        step_.node(*std::find_if(part.nodes.begin(), part.nodes.end(), [&](StepNodeId id) { return is_raw(id); }));
    Node frames;
    frames.op = &op_def<Frames>;
    frames.name = str_cat(first->name, "/frames");
    frames.where = first->where;
    Frames::Attrs attrs{{frames.name}, {}};
    for (const StepEndpoint output : part.outputs) {
      OutputInfo info = step_.output(output);
      attrs.output_types.push_back(info.dtype);
      frames.outputs.push_back(std::move(info));
    }
    frames.attrs = std::make_shared<const Frames::Attrs>(std::move(attrs));
    auto call = std::make_shared<StepCall>();
    for (StepNode& each : part.body.nodes) {
      const bool is_said = !each.is_fed_only && !each->device.empty() && each.op->role != OpRole::constant;
      if (is_said && each.placed_on != first.placed_on) {
        throw_error(unimplemented(str_cat("it is on another device than '", first->name,
                                          "', with which it is part of raw control flow"))
                        .with_node(each.op->name, each->name)
                        .with_location(each->where));
      }
      each.placed_on = first.placed_on;
    }
    call->bodies.push_back(std::make_shared<const StepGraph>(std::move(part.body)));
    std::vector<StepEndpoint> inputs;
    std::vector<StepNodeId> controls;
    inputs.reserve(part.inputs.size());
    controls.reserve(part.controls.size());
    for (const StepEndpoint input : part.inputs) inputs.push_back(edge(input));
    for (const StepNodeId control : part.controls) controls.push_back(node(control));
    part.now = fresh.append(std::move(frames), first.placed_on, inputs, controls);
    fresh.node(part.now).call = static_cast<std::int32_t>(fresh.calls.size());
    fresh.calls.push_back(std::move(call));
  }

  StepGraph& step_;
  EdgePositions<StepNodeId> feeds_;
  FrameLayout layout_;
  IndexedVector<StepNodeId, std::ptrdiff_t> part_of_;
  std::vector<Part> parts_;
  std::map<StepEndpoint, std::size_t, EdgeOrder> output_;  ///< of its part
  std::map<StepNodeId, StepNodeId> outside_;               ///< of the part that is filled
  std::map<StepEndpoint, std::size_t, EdgeOrder> given_;
  IndexedVector<StepNodeId, StepNodeId> now_;
  std::map<StepNodeId, StepNodeId> fed_there_;
};

}  // namespace detail

DFLOW_INLINE void form_frames(StepGraph& step) {
  const bool has_any = std::any_of(step.nodes.begin(), step.nodes.end(),
                                   [](const StepNode& node) { return passes_on(node.op->role) && !node.is_fed_only; });
  if (has_any) detail::FrameFormer(step).form();
}

}  // namespace dflow
