#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/frame_layout.hpp>
#include <dflow/graph/graph.hpp>

#include <map>
#include <utility>
#include <variant>

namespace dflow {

namespace detail {

class FrameFinder {
 public:
  explicit FrameFinder(const StepGraph& step) : step_(step), feeds_(step.feeds, step.nodes.size()) {
    layout_.frames.push_back({});
    layout_.runs_in.assign(step.nodes.size(), 0);
    layout_.gives_to.assign(step.nodes.size(), 0);
    layout_.is_everywhere.assign(step.nodes.size(), false);
  }

  FrameLayout find() {
    for (const StepNodeId id : step_.nodes.indices()) {
      const StepNode& node = step_.node(id);
      if (node.is_fed_only) continue;
      layout_.is_everywhere[id] = node.op->role == OpRole::constant && node.num_controls == 0;
      const std::ptrdiff_t frame = frame_around(node);
      layout_.runs_in[id] = layout_.gives_to[id] = frame;
      if (node.op->role == OpRole::enter) layout_.gives_to[id] = enter(id, frame);
      const bool leaves = node.op->role == OpRole::exit;
      if ((leaves || node.op->role == OpRole::next_iteration) && frame == 0) fail(node, "it is in no frame");
      if (leaves) layout_.gives_to[id] = layout_.frames[static_cast<std::size_t>(frame)].outer;
    }
    return std::move(layout_);
  }

 private:
  [[noreturn]] static void fail(const StepNode& node, std::string message) {
    throw_error(
        Status::invalid_argument(std::move(message)).with_node(node.op->name, node->name).with_location(node->where));
  }

  /// The frame of the inputs; the frame of the step if there are no inputs.
  std::ptrdiff_t frame_around(const StepNode& node) const {
    std::ptrdiff_t frame = -1;
    StepNodeId said_by;
    const auto see = [&](StepNodeId source, bool is_fed) {
      if (!is_fed && (layout_.is_everywhere[source] || step_.node(source).is_fed_only)) return;
      const std::ptrdiff_t of = is_fed ? 0 : layout_.gives_to[source];
      if (frame < 0) said_by = source;
      if (frame >= 0 && frame != of) {
        fail(node, str_cat("'", step_.node(said_by)->name, "' is in ", words(frame), ", and '",
                           step_.node(source)->name, "' in ", words(of)));
      }
      frame = of;
    };
    for (const StepEndpoint input : step_.inputs_of(node)) see(input.node, feeds_.contains(input));
    for (const StepNodeId control : step_.controls_of(node)) {
      if (control.is_valid()) see(control, false);
    }
    return frame < 0 ? 0 : frame;
  }

  std::string words(std::ptrdiff_t frame) const {
    if (frame == 0) return "no frame";
    return str_cat("frame '", layout_.frames[static_cast<std::size_t>(frame)].name, "'");
  }

  std::ptrdiff_t enter(StepNodeId id, std::ptrdiff_t outer) {
    const StepNode& node = step_.node(id);
    const auto attr = [&](std::size_t i) { return attr_of(*node, node.op->attr_fields[i]); };
    const std::string name = std::get<std::string>(attr(0));
    const std::int64_t parallel = std::get<std::int64_t>(attr(2));
    const auto [found, is_new] =
        by_name_.try_emplace(std::pair(outer, name), static_cast<std::ptrdiff_t>(layout_.frames.size()));
    if (is_new) layout_.frames.push_back({name, outer, id, 0, parallel});
    FrameLayout::Frame& frame = layout_.frames[static_cast<std::size_t>(found->second)];
    if (frame.parallel_iterations != parallel) {
      fail(node, str_cat("frame '", name, "' runs ", frame.parallel_iterations, " iterations at once for '",
                         step_.node(frame.first)->name, "', and ", parallel, " for this one"));
    }
    ++frame.num_enters;
    return found->second;
  }

  const StepGraph& step_;
  EdgePositions<StepNodeId> feeds_;
  FrameLayout layout_;
  std::map<std::pair<std::ptrdiff_t, std::string>, std::ptrdiff_t> by_name_;
};

}  // namespace detail

FrameLayout lay_out_frames(const StepGraph& step) { return detail::FrameFinder(step).find(); }

}  // namespace dflow
