#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/frame_layout.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/passes/aliveness.hpp>
#include <dflow/passes/contract.hpp>
#include <dflow/passes/frames.hpp>
#include <dflow/passes/raise_frames.hpp>
#include <dflow/passes/span_finder.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

class FrameFormer {
 public:
  FrameFormer(StepGraph& step, const Raises& raises)
      : step_(step),
        raises_(raises),
        feeds_(step.feeds, step.nodes.size()),
        layout_(lay_out_frames(step)),
        part_of_(step.nodes.size(), none) {}

  void form() {
    check_ends();
    find_members();
    join_members();
    parts_ = find_groups(step_, part_of_);
    const bool is_done = contract(
        step_, part_of_, parts_,
        [&](StepGraph& fresh, std::size_t number, std::span<const StepEndpoint> inputs,
            std::span<const StepNodeId> controls) {
          const StepGroup& part = parts_[number];
          StepGraph body = body_of(part);
          const StepNode* const elsewhere = node_elsewhere(part);
          if (elsewhere != nullptr || raises_.on(first_of(part).placed_on)) {
            if (const std::optional<StepGraph> raised = raise_frames(body)) {
              return append_raised(fresh, part, *raised, inputs, controls);
            }
          }
          if (elsewhere != nullptr) {
            throw_error(
                Status::unimplemented(str_cat("it is on another device than '", first_of(part)->name,
                                              "', with which it is part of raw control flow that does not have the "
                                              "form of branches and loops"))
                    .with_node(elsewhere->op->name, (*elsewhere)->name)
                    .with_location((*elsewhere)->where));
          }
          return append_frames(fresh, part, std::move(body), inputs, controls);
        });
    if (!is_done) throw_error(Status::internal("raw control flow waits for what waits for it"));
  }

 private:
  static constexpr std::ptrdiff_t none = -1;

  [[noreturn]] static void fail(const StepNode& node, std::string message) {
    throw_error(
        Status::invalid_argument(std::move(message)).with_node(node.op->name, node->name).with_location(node->where));
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

  /// Calls `see(source)` for each node that the node waits for.
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

  /// Finds the raw nodes, the nodes that wait for a node that may be dead, and the nodes between them.
  void find_members() {
    Aliveness aliveness(step_, layout_);
    const bool has_spanning = std::any_of(step_.nodes.begin(), step_.nodes.end(),
                                          [&](const StepNode& node) { return spans_.spans(step_, node); });
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
      // The parts of a call on several devices would wait for a part that is passed over.
      const bool gives_dead = Aliveness::gives_dead(step_, node);
      is_anchor[id] =
          is_anchor[id] || (has_spanning && aliveness.may_be_dead(id) && (spans_.spans(step_, node) || gives_dead));
      // If a node of the part gives dead results, the step would pass over the whole part.
      is_behind[id] = is_anchor[id] || gives_dead;
      for_each_source(id, [&](StepNodeId source) { is_behind[id] = is_behind[id] || is_behind[source]; });
    }
    for (std::size_t i = step_.nodes.size(); i-- > 0;) {
      const StepNodeId id(i);
      leads_on[id] = leads_on[id] || is_anchor[id];
      if (leads_on[id] && is_behind[id]) part_of_[id] = 0;
      if (leads_on[id]) for_each_source(id, [&](StepNodeId source) { leads_on[source] = true; });
    }
    step_.gives_dead = std::any_of(step_.fetches.begin(), step_.fetches.end(), [&](StepEndpoint fetch) {
      return !feeds_.contains(fetch) && aliveness.may_be_dead(fetch);
    });
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
    std::unordered_map<std::size_t, std::ptrdiff_t> numbers;
    for (const StepNodeId id : step_.nodes.indices()) {
      if (part_of_[id] == none) continue;
      const auto next = static_cast<std::ptrdiff_t>(numbers.size());
      part_of_[id] = numbers.try_emplace(root(id.position()), next).first->second;
    }
  }

  const StepNode& first_of(const StepGroup& part) const {
    const auto first = std::find_if(part.nodes.begin(), part.nodes.end(), [&](StepNodeId id) { return is_raw(id); });
    return step_.node(first == part.nodes.end() ? part.nodes.front() : *first);
  }

  /// A node of the part that must be on another device than its first, or calls a body there; null if there is none.
  const StepNode* node_elsewhere(const StepGroup& part) {
    const std::int32_t here = first_of(part).placed_on;
    for (const StepNodeId id : part.nodes) {
      const StepNode& node = step_.node(id);
      if (spans_.spans(step_, node)) return &node;
      if (node.placed_on == here || node.op->role == OpRole::constant) continue;
      if (node.call >= 0) return &node;  // its bodies stay where they are
      const std::span<const StepEndpoint> inputs = std::as_const(step_).inputs_of(node);
      const bool uses_handle = std::any_of(inputs.begin(), inputs.end(),
                                           [&](StepEndpoint input) { return is_handle(step_.output(input).dtype); });
      if (!node->device.empty() || node->colocated_with.is_valid() || uses_handle) return &node;
    }
    return nullptr;
  }

  /// The nodes of a part as a graph of their own; edges that they read from outside are fed.
  StepGraph body_of(const StepGroup& part) const {
    StepGraph body;
    body.graph = step_.graph;
    body.made = step_.made;
    std::unordered_map<StepNodeId, StepNodeId> now;
    std::unordered_map<StepEndpoint, StepEndpoint, EndpointHash> given;
    std::unordered_map<StepNodeId, StepNodeId> outside;
    for (const StepEndpoint input : part.inputs) {
      StepNodeId& source = outside[input.node];
      if (!source.is_valid()) {
        StepNode bare = step_.node(input.node);
        bare.is_fed_only = true;
        bare.call = -1;
        source = body.append(bare, {}, {});
      }
      body.feeds.push_back({source, input.index});
      given.emplace(input, body.feeds.back());
    }
    std::vector<StepEndpoint> inputs;
    std::vector<StepNodeId> controls;
    for (const StepNodeId id : part.nodes) {
      const StepNode& node = step_.node(id);
      inputs.clear();
      controls.clear();
      for (const StepEndpoint input : std::as_const(step_).inputs_of(node)) {
        if (const auto found = given.find(input); found != given.end()) {
          inputs.push_back(found->second);
          continue;
        }
        StepNodeId& source = now[input.node];
        if (!source.is_valid()) source = body.append(step_.node(input.node), {}, {});  // a constant
        inputs.push_back({source, input.index});
      }
      for (const StepNodeId control : std::as_const(step_).controls_of(node)) {
        if (control.is_valid() && part_of_[control] != none) controls.push_back(now.at(control));
      }
      StepNode here = node;
      if (node.call >= 0) {
        here.call = static_cast<std::int32_t>(body.calls.size());
        body.calls.push_back(step_.calls[static_cast<std::size_t>(node.call)]);
      }
      now[id] = body.append(here, inputs, controls);
    }
    for (const StepEndpoint output : part.outputs) body.fetches.push_back({now.at(output.node), output.index});
    for (const StepNodeId id : part.waited_for) body.targets.push_back(now.at(id));
    return body;
  }

  /// One node that calls the body, all of it on the device of the first.
  StepReplacement append_frames(StepGraph& fresh, const StepGroup& part, StepGraph body,
                                std::span<const StepEndpoint> inputs, std::span<const StepNodeId> controls) const {
    const StepNode& first = first_of(part);
    Node frames;
    frames.op = &op_def<Frames>;
    frames.name = step_node_beside(first->name, "frames");
    frames.where = first->where;
    Frames::Attrs attrs{{frames.name}, {}};
    for (const StepEndpoint output : part.outputs) {
      OutputInfo info = step_.output(output);
      attrs.output_types.push_back(info.dtype);
      frames.outputs.push_back(std::move(info));
    }
    frames.attrs = reflect::share(std::move(attrs));
    for (StepNode& each : body.nodes) each.placed_on = first.placed_on;
    auto call = std::make_shared<StepCall>();
    call->bodies.push_back(std::make_shared<const StepGraph>(std::move(body)));
    const StepNodeId made = fresh.append(std::move(frames), first.placed_on, inputs, controls);
    fresh.node(made).call = static_cast<std::int32_t>(fresh.calls.size());
    fresh.calls.push_back(std::move(call));
    StepReplacement by;
    for (std::size_t i = 0; i < part.outputs.size(); ++i) by.outputs.push_back({made, static_cast<std::int32_t>(i)});
    by.waited_for.assign(part.waited_for.size(), made);
    return by;
  }

  /// The nodes of a raised part. All of them begin when the nodes that the part waits for have ended.
  StepReplacement append_raised(StepGraph& fresh, const StepGroup& part, const StepGraph& raised,
                                std::span<const StepEndpoint> inputs, std::span<const StepNodeId> controls) const {
    for (const auto& each : raised.made) {
      if (std::find(fresh.made.begin(), fresh.made.end(), each) == fresh.made.end()) fresh.made.push_back(each);
    }
    const EdgePositions<StepNodeId> feeds(raised.feeds, raised.nodes.size());
    IndexedVector<StepNodeId, StepNodeId> now(raised.nodes.size());
    const auto edge = [&](StepEndpoint old) -> StepEndpoint {
      const std::int32_t feed = feeds.find(old);
      return feed >= 0 ? inputs[static_cast<std::size_t>(feed)] : StepEndpoint{now[old.node], old.index};
    };
    std::vector<StepNodeId> begun(controls.begin(), controls.end());
    if (begun.size() > 1) {
      Node all;
      all.op = &op_def<NoOp>;
      all.name = step_node_beside(first_of(part)->name, "begin");
      begun = {fresh.append(std::move(all), first_of(part).placed_on, {}, controls)};
    }
    std::vector<StepEndpoint> its_inputs;
    std::vector<StepNodeId> its_controls;
    for (const StepNodeId id : raised.nodes.indices()) {
      const StepNode& node = raised.node(id);
      if (node.is_fed_only) continue;
      its_inputs.clear();
      its_controls.clear();
      for (const StepEndpoint input : raised.inputs_of(node)) its_inputs.push_back(edge(input));
      for (const StepNodeId control : raised.controls_of(node)) {
        if (now[control].is_valid()) its_controls.push_back(now[control]);
      }
      if (!is_free_constant(node)) its_controls.insert(its_controls.end(), begun.begin(), begun.end());
      StepNode here = node;
      if (node.call >= 0) {
        here.call = static_cast<std::int32_t>(fresh.calls.size());
        fresh.calls.push_back(raised.calls[static_cast<std::size_t>(node.call)]);
      }
      now[id] = fresh.append(here, its_inputs, its_controls);
    }
    StepReplacement by;
    for (std::size_t i = 0; i < part.outputs.size(); ++i) by.outputs.push_back(edge(raised.fetches[i]));
    for (std::size_t i = 0; i < part.waited_for.size(); ++i) by.waited_for.push_back(now[raised.targets[i]]);
    return by;
  }

  StepGraph& step_;
  const Raises& raises_;
  EdgePositions<StepNodeId> feeds_;
  FrameLayout layout_;
  SpanFinder spans_;
  IndexedVector<StepNodeId, std::ptrdiff_t> part_of_;
  std::vector<StepGroup> parts_;
};

}  // namespace detail

void form_frames(StepGraph& step, const Raises& raises) {
  const bool has_any = std::any_of(step.nodes.begin(), step.nodes.end(), [&](const StepNode& node) {
    return !node.is_fed_only && (passes_on(node.op->role) || detail::Aliveness::gives_dead(step, node));
  });
  if (has_any) detail::FrameFormer(step, raises).form();
}

}  // namespace dflow
