#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/frame_layout.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/control/frames.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/passes/aliveness.hpp>
#include <dflow/passes/contract.hpp>
#include <dflow/passes/raise_frames.hpp>
#include <dflow/passes/raised_body.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// Raises the branches of a graph without frames.
class BranchRaiser {
 public:
  explicit BranchRaiser(std::size_t& number) : number_(number) {}

  bool raise(StepGraph& graph) {
    constexpr int max_levels = 64;
    for (int level = 0; level < max_levels; ++level) {
      const bool has_any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const StepNode& node) {
        return passes_on(node.op->role) && !node.is_fed_only;
      });
      if (!has_any) return is_alive(graph);
      if (!raise_innermost(graph)) return false;
    }
    return false;
  }

 private:
  /// The part that a node plays in its branch.
  struct Member {
    StepEndpoint side_of;    ///< none: of no branch
    std::int32_t side = -1;  ///< -1: of both, a Switch or a Merge
  };

  static bool is_alive(const StepGraph& graph) {
    return std::none_of(graph.nodes.begin(), graph.nodes.end(),
                        [&](const StepNode& node) { return !node.is_fed_only && Aliveness::gives_dead(graph, node); });
  }

  static bool is_raw(const StepNode& node, OpRole role) { return node.op->role == role && !node.is_fed_only; }

  bool raise_innermost(StepGraph& graph) {
    const FrameLayout no_frames;
    Aliveness aliveness(graph, no_frames);
    std::unordered_map<StepEndpoint, std::size_t, EndpointHash> depths;
    std::size_t deepest = 0;
    for (const StepNodeId id : graph.nodes.indices()) {
      const StepNode& node = graph.node(id);
      aliveness.visit(id);
      if (!is_raw(node, OpRole::switch_op)) continue;
      std::size_t& depth = depths[graph.inputs_of(node)[1]];
      depth = std::max(depth, aliveness.of(id).size());
      deepest = std::max(deepest, depth);
    }
    members_.assign(graph.nodes.size(), Member());
    for (const StepNodeId id : graph.nodes.indices()) {
      const StepNode& node = graph.node(id);
      if (node.is_fed_only) continue;
      if (is_raw(node, OpRole::switch_op)) {
        const StepEndpoint read = graph.inputs_of(node)[1];
        if (depths[read] == deepest) members_[id] = {read, -1};
      } else if (is_raw(node, OpRole::merge) && node.num_inputs == 2) {
        const Aliveness::Sides differs =
            Aliveness::difference(aliveness.of(graph.inputs_of(node)[0]), aliveness.of(graph.inputs_of(node)[1]));
        const bool joins = differs.size() == 2 && differs[0].read == differs[1].read;
        if (joins && depth_of(depths, differs[0].read) == deepest) members_[id] = {differs[0].read, -1};
      }
      if (members_[id].side_of.node.is_valid()) continue;
      for (const Aliveness::Side& side : aliveness.of(id)) {
        if (!side.read.node.is_valid()) return false;
        if (depth_of(depths, side.read) != deepest) continue;
        if (members_[id].side_of.node.is_valid()) return false;  // of two branches, or of both sides
        members_[id] = {side.read, side.side};
      }
    }
    const GroupNumbers group_of = join(graph);
    const std::vector<StepGroup> groups = find_groups(graph, group_of);
    if (groups.empty()) return false;
    std::vector<RaisedCall> calls(groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (!raise_branch(graph, aliveness, group_of, groups[g], calls[g])) return false;
    }
    return put_calls(graph, group_of, groups, calls);
  }

  static std::size_t depth_of(const std::unordered_map<StepEndpoint, std::size_t, EndpointHash>& depths,
                              StepEndpoint read) {
    const auto found = depths.find(read);
    return found == depths.end() ? 0 : found->second;
  }

  bool is_member(StepNodeId id) const { return members_[id].side_of.node.is_valid(); }
  bool is_merge(const StepGraph& graph, StepNodeId id) const {
    return members_[id].side < 0 && is_raw(graph.node(id), OpRole::merge);
  }

  /// Joins members of one branch that hang together. The outputs of a Merge are outside of it.
  GroupNumbers join(const StepGraph& graph) const {
    IndexedVector<StepNodeId, StepNodeId> parent(graph.nodes.size());
    for (const StepNodeId id : graph.nodes.indices()) parent[id] = id;
    const auto root = [&](StepNodeId id) {
      while (parent[id] != id) id = parent[id] = parent[parent[id]];
      return id;
    };
    for (const StepNodeId id : graph.nodes.indices()) {
      if (!is_member(id)) continue;
      const auto see = [&](StepNodeId source) {
        if (!is_member(source) || !(members_[source].side_of == members_[id].side_of)) return;
        if (is_merge(graph, source) && !is_merge(graph, id)) return;
        parent[root(source)] = root(id);
      };
      for (const StepEndpoint input : graph.inputs_of(graph.node(id))) see(input.node);
      for (const StepNodeId control : graph.controls_of(graph.node(id))) {
        if (control.is_valid()) see(control);
      }
    }
    GroupNumbers group_of(graph.nodes.size(), -1);
    std::unordered_map<StepNodeId, std::ptrdiff_t> numbers;
    for (const StepNodeId id : graph.nodes.indices()) {
      if (!is_member(id)) continue;
      const auto next = static_cast<std::ptrdiff_t>(numbers.size());
      group_of[id] = numbers.try_emplace(root(id), next).first->second;
    }
    return group_of;
  }

  /// A group on its way to a call.
  struct Branch {
    const StepGraph& graph;
    const Aliveness& aliveness;
    const GroupNumbers& group_of;
    const StepGroup& group;
    RaisedCall& by;
    StepEndpoint read;
    std::vector<StepNodeId> merges;
    RaisedBody bodies[2] = {RaisedBody(graph), RaisedBody(graph)};  ///< by side

    bool has(StepNodeId id) const { return group_of[id] == group_of[group.nodes.front()]; }
  };

  bool raise_branch(const StepGraph& graph, const Aliveness& aliveness, const GroupNumbers& group_of,
                    const StepGroup& group, RaisedCall& by) {
    Branch branch{graph, aliveness, group_of, group, by, members_[group.nodes.front()].side_of, {}};
    std::copy_if(group.nodes.begin(), group.nodes.end(), std::back_inserter(branch.merges),
                 [&](StepNodeId id) { return is_merge(graph, id); });
    if (!is_read_around(branch)) return false;
    begin_call(branch);
    return append_members(branch) && add_results(branch) && add_bodies(branch);
  }

  /// The edge that says which side is taken is not part of the branch, and the whole branch is in the same branches
  /// around it.
  static bool is_read_around(const Branch& branch) {
    if (branch.has(branch.read.node)) return false;
    const auto around = [&](StepNodeId id) { return without(branch.aliveness.of(id), branch.read); };
    const Aliveness::Sides of_first = around(branch.group.nodes.front());
    return std::all_of(branch.group.nodes.begin(), branch.group.nodes.end(),
                       [&](StepNodeId id) { return around(id) == of_first; });
  }

  void begin_call(Branch& branch) {
    const StepNode& first =
        branch.graph.node(branch.merges.empty() ? branch.group.nodes.front() : branch.merges.front());
    Node& call = branch.by.node;
    call.op = &op_def<If>;
    call.name = step_node_beside(first->name, str_cat("if_", number_++));
    call.where = first->where;
    branch.by.placed_on = first.placed_on;
    branch.by.inputs = {branch.read};
    for (const StepEndpoint input : branch.group.inputs) {
      for (RaisedBody& body : branch.bodies) body.add_argument(branch.graph.output(input), {&input, 1}, call);
      branch.by.inputs.push_back(input);
    }
  }

  bool append_members(Branch& branch) const {
    const auto run = [&](StepNodeId id) {
      for (RaisedBody& body : branch.bodies) body.append_control_target(id);
    };
    for (const StepNodeId id : branch.group.nodes) {
      const StepNode& node = branch.graph.node(id);
      if (is_raw(node, OpRole::switch_op) && members_[id].side < 0) {
        if (!append_switch(branch, id)) return false;
      } else if (is_merge(branch.graph, id)) {
        for (const StepNodeId control : branch.graph.controls_of(node)) run(control);
      } else if (!append_of_side(branch, id)) {
        return false;
      }
    }
    for (const StepNodeId id : branch.group.waited_for) run(id);
    return true;
  }

  static bool append_switch(Branch& branch, StepNodeId id) {
    const StepEndpoint input = branch.graph.inputs_of(branch.graph.node(id))[0];
    if (branch.has(input.node) || waits_inside(branch.graph, branch.group_of, id)) return false;
    for (std::int32_t side : {0, 1}) branch.bodies[side].add_alias({id, side}, input);
    return true;
  }

  bool append_of_side(Branch& branch, StepNodeId id) const {
    const StepNode& node = branch.graph.node(id);
    const std::int32_t side = members_[id].side;
    if (side < 0 || passes_on(node.op->role)) return false;
    const std::span<const StepEndpoint> inputs = branch.graph.inputs_of(node);
    const bool reads_merge = std::any_of(inputs.begin(), inputs.end(), [&](StepEndpoint input) {
      return branch.has(input.node) && is_merge(branch.graph, input.node);
    });
    if (reads_merge) return false;
    // The call waits for nodes outside, and a Switch is there from the beginning.
    branch.bodies[side].append(id, [&](StepNodeId control) {
      return !branch.has(control) || is_raw(branch.graph.node(control), OpRole::switch_op);
    });
    return true;
  }

  /// Adds the Merges' outputs, and their numbers where they are read. Nothing else may leave the branch.
  bool add_results(Branch& branch) const {
    const std::unordered_set<StepEndpoint, EndpointHash> outputs(branch.group.outputs.begin(),
                                                                 branch.group.outputs.end());
    for (const StepEndpoint output : outputs) {
      if (!is_merge(branch.graph, output.node)) return false;
    }
    Node& call = branch.by.node;
    If::Attrs attrs{{str_cat(call.name, "/then")}, {str_cat(call.name, "/else")}, {}, {}};
    const auto add_result = [&](StepEndpoint edge) {
      branch.by.output_of.emplace(edge, static_cast<std::int32_t>(call.outputs.size()));
      call.outputs.push_back(branch.graph.output(edge));
      attrs.output_types.push_back(call.outputs.back().dtype);
      attrs.output_shapes.push_back(call.outputs.back().shape);
    };
    for (const StepNodeId merge : branch.merges) {
      const OutputInfo& info = branch.graph.output({merge, 0});
      if (info.dtype == DType::resource) return false;
      add_result({merge, 0});
      const bool has_index = outputs.contains({merge, 1});
      if (has_index) add_result({merge, 1});
      for (std::int32_t i : {0, 1}) {
        const StepEndpoint input = branch.graph.inputs_of(branch.graph.node(merge))[static_cast<std::size_t>(i)];
        const Aliveness::Sides sides = branch.aliveness.of(input);
        const auto found =
            std::find_if(sides.begin(), sides.end(), [&](const auto& of) { return of.read == branch.read; });
        if (found == sides.end()) return false;
        RaisedBody& body = branch.bodies[found->side];
        body.fetch(input, info, branch.by.placed_on, call);
        if (has_index) body.fetch_number(i, branch.by.placed_on, call);
      }
    }
    call.attrs = reflect::share(std::move(attrs));
    return true;
  }

  static bool add_bodies(Branch& branch) {
    StepCall& call = *branch.by.call;
    call.num_leading = 1;
    call.around = {-1, -1};
    for (const std::int32_t side : {1, 0}) {
      if (!branch.bodies[side].is_whole()) return false;
      call.bodies.push_back(std::make_shared<const StepGraph>(branch.bodies[side].take()));
    }
    return true;
  }

  /// A Switch is there when its input is, unless it waits for a node of the branch.
  static bool waits_inside(const StepGraph& graph, const GroupNumbers& group_of, StepNodeId id) {
    const std::span<const StepNodeId> controls = graph.controls_of(graph.node(id));
    return std::any_of(controls.begin(), controls.end(), [&](StepNodeId control) {
      return control.is_valid() && group_of[control] == group_of[id] && !is_raw(graph.node(control), OpRole::switch_op);
    });
  }

  static Aliveness::Sides without(const Aliveness::Sides& sides, StepEndpoint read) {
    Aliveness::Sides rest;
    std::copy_if(sides.begin(), sides.end(), std::back_inserter(rest), [&](const auto& of) { return of.read != read; });
    return rest;
  }

  std::size_t& number_;
  IndexedVector<StepNodeId, Member> members_;
};

/// One frame without frames in it.
class LoopRaiser {
 public:
  LoopRaiser(const StepGraph& graph, const FrameLayout::Frame& frame, const Aliveness& aliveness,
             const StepGroup& group)
      : graph_(graph), frame_(frame), aliveness_(aliveness), group_(group) {}

  bool raise(std::size_t& number, RaisedCall& by) {
    if (!find_parts() || !find_sides() || !find_again() || !lives_as_one()) return false;
    begin_call(number, by);
    RaisedBody asks(graph_), runs(graph_);
    for (const Variable& each : variables_) add_argument({each.merge, 0}, each.enter, by, asks, runs);
    for (const StepNodeId capture : captures_) add_argument({capture, 0}, capture, by, asks, runs);
    append_members(asks, runs);
    add_results(asks, runs);
    return add_bodies(asks, runs, number, *by.call) && find_results(by);
  }

 private:
  enum class Part { none, variable, enter, capture, next, condition, loop_switch, exit };
  enum class Side { asks, runs, ended };
  struct Variable {
    StepNodeId merge, enter, next;
  };

  void begin_call(std::size_t& number, RaisedCall& by) const {
    const StepNode& first = graph_.node(condition_);
    Node& call = by.node;
    call.op = &op_def<While>;
    call.name = step_node_beside(first->name, str_cat("while_", number++));
    call.where = first->where;
    by.placed_on = first.placed_on;
    While::Attrs attrs{
        {str_cat(call.name, "/condition")}, {str_cat(call.name, "/body")}, {}, {}, frame_.parallel_iterations};
    for (const Variable& each : variables_) {
      const OutputInfo& info = graph_.output({each.merge, 0});
      call.outputs.push_back(info);
      attrs.output_types.push_back(info.dtype);
      attrs.output_shapes.push_back(info.shape);
    }
    call.attrs = reflect::share(std::move(attrs));
  }

  /// An argument of both functions, which stands for an edge that enters.
  void add_argument(StepEndpoint edge, StepNodeId enter, RaisedCall& by, RaisedBody& asks, RaisedBody& runs) const {
    for (RaisedBody* body : {&asks, &runs}) body->add_argument(graph_.output(edge), {&edge, 1}, by.node);
    by.inputs.push_back(graph_.inputs_of(graph_.node(enter))[0]);
  }

  void append_members(RaisedBody& asks, RaisedBody& runs) const {
    const auto is_there = [&](StepNodeId control) {
      const auto found = parts_.find(control);
      return found == parts_.end() || found->second != Part::none;
    };
    for (const StepNodeId id : group_.nodes) {
      const Part part = parts_.at(id);
      const bool is_asked = part == Part::none && sides_.at(id) == Side::asks;
      if (is_asked) {
        asks.append(id, is_there);
        if (again_.contains(id)) runs.append_copy(id);
        continue;
      }
      if (part == Part::loop_switch) runs.add_alias({id, 1}, graph_.inputs_of(graph_.node(id))[0]);
      // The condition's work is already done.
      if (part == Part::none) {
        runs.append(id, [&](StepNodeId control) { return is_there(control) || sides_.at(control) == Side::asks; });
      }
      for (const StepNodeId control : graph_.controls_of(graph_.node(id))) asks.append_control_target(control);
    }
  }

  void add_results(RaisedBody& asks, RaisedBody& runs) const {
    asks.fetch(graph_.inputs_of(graph_.node(condition_))[0]);
    for (const Variable& each : variables_) {
      runs.fetch(graph_.inputs_of(graph_.node(each.next))[0]);
      for (const StepNodeId control : graph_.controls_of(graph_.node(each.next))) runs.append_control_target(control);
    }
  }

  static bool add_bodies(RaisedBody& asks, RaisedBody& runs, std::size_t& number, StepCall& call) {
    call.around = {-1, -1};
    for (RaisedBody* each : {&asks, &runs}) {
      if (!each->is_whole()) return false;
      StepGraph body = each->take();
      if (!BranchRaiser(number).raise(body)) return false;
      call.bodies.push_back(std::make_shared<const StepGraph>(std::move(body)));
    }
    return true;
  }

  /// Enters, Merges, NextIterations and the LoopCond.
  bool find_parts() {
    std::unordered_map<StepNodeId, std::size_t> by_merge;
    for (const StepNodeId id : group_.nodes) {
      const StepNode& node = graph_.node(id);
      const std::span<const StepEndpoint> inputs = graph_.inputs_of(node);
      Part& part = parts_[id];
      for (const StepEndpoint input : inputs) {
        const auto source = parts_.find(input.node);
        if (source == parts_.end()) continue;
        // Only its Merge reads an Enter of a variable; nobody asks where a variable comes from.
        if (source->second == Part::enter && (node.op->role != OpRole::merge || inputs.size() != 1)) return false;
        if (source->second == Part::variable && input.index != 0) return false;
      }
      for (const StepNodeId control : graph_.controls_of(node)) {
        const auto source = parts_.find(control);
        if (source == parts_.end()) continue;
        // A variable's first value is there in the first iteration alone, and nothing comes after a NextIteration.
        if (source->second == Part::enter || source->second == Part::next) return false;
      }
      switch (node.op->role) {
        case OpRole::enter:
          part = static_cast<const Enter::Attrs*>(node->attrs.get())->is_constant ? Part::capture : Part::enter;
          if (part == Part::capture) captures_.push_back(id);
          break;
        case OpRole::merge:
          if (inputs.size() != 1) break;
          if (const auto enter = parts_.find(inputs[0].node); enter == parts_.end() || enter->second != Part::enter ||
                                                              graph_.output({id, 0}).dtype == DType::resource) {
            return false;
          }
          if (!entered_.insert(inputs[0].node).second) return false;
          if (waits_inside(node)) return false;
          part = Part::variable;
          by_merge.emplace(id, variables_.size());
          variables_.push_back({id, inputs[0].node, {}});
          break;
        case OpRole::next_iteration: {
          const auto variable = by_merge.find(inputs[1].node);
          if (variable == by_merge.end() || variables_[variable->second].next.is_valid()) return false;
          variables_[variable->second].next = id;
          part = Part::next;
          break;
        }
        case OpRole::loop_cond:
          if (condition_.is_valid()) return false;
          condition_ = id;
          part = Part::condition;
          break;
        case OpRole::exit:
          part = Part::exit;
          break;
        default:
          break;
      }
    }
    const auto num_enters =
        std::count_if(parts_.begin(), parts_.end(), [](const auto& each) { return each.second == Part::enter; });
    return condition_.is_valid() && !variables_.empty() && static_cast<std::size_t>(num_enters) == variables_.size() &&
           std::all_of(variables_.begin(), variables_.end(), [](const Variable& v) { return v.next.is_valid(); });
  }

  /// For something that is not there from the beginning of an iteration.
  bool waits_inside(const StepNode& node) const {
    const std::span<const StepNodeId> controls = graph_.controls_of(node);
    return std::any_of(controls.begin(), controls.end(), [&](StepNodeId control) {
      const auto source = parts_.find(control);
      return source != parts_.end() && source->second != Part::variable && source->second != Part::capture;
    });
  }

  /// Finds the nodes that run in each iteration that goes on, and the nodes that also run in the last one.
  bool find_sides() {
    for (const StepNodeId id : group_.nodes) {
      const StepNode& node = graph_.node(id);
      const std::span<const StepEndpoint> inputs = graph_.inputs_of(node);
      if (node.op->role == OpRole::switch_op && inputs[1] == StepEndpoint{condition_, 0})
        parts_[id] = Part::loop_switch;
      Side& side = sides_[id];
      side = Side::asks;
      bool has_runs = false, has_ended = false, waits_for_condition = false;
      const auto see = [&](Side of) {
        has_runs = has_runs || of == Side::runs;
        has_ended = has_ended || of == Side::ended;
      };
      for (const StepEndpoint input : inputs) {
        const auto source = parts_.find(input.node);
        if (source == parts_.end()) continue;  // from outside, or a constant
        if (source->second == Part::condition && parts_[id] != Part::loop_switch) return false;
        see(source->second == Part::loop_switch ? (input.index == 1 ? Side::runs : Side::ended)
                                                : sides_.at(input.node));
      }
      for (const StepNodeId control : graph_.controls_of(node)) {
        if (!control.is_valid() || !sides_.contains(control)) continue;
        // A node after the condition that runs whichever side it takes would be a part of neither function.
        const bool is_behind = parts_.at(control) == Part::condition || parts_.at(control) == Part::loop_switch;
        if (is_behind && parts_.at(id) == Part::none) waits_for_condition = true;
        see(sides_.at(control));
      }
      if ((has_runs && has_ended) || (waits_for_condition && !has_runs)) return false;
      if (has_runs) side = Side::runs;
      if (has_ended) side = Side::ended;
      const Part part = parts_.at(id);
      const bool fits = part == Part::exit                                     ? side == Side::ended
                        : part == Part::condition || part == Part::loop_switch ? side == Side::asks
                        : part == Part::next                                   ? true
                                                                               : side != Side::ended;
      if (!fits) return false;
      if (part == Part::exit && parts_.at(inputs[0].node) != Part::loop_switch) return false;
      if (part == Part::next && !is_of_iteration(inputs[0])) return false;
    }
    return true;
  }

  /// Alive in an iteration that goes on, and only there.
  bool is_of_iteration(StepEndpoint edge) const {
    const auto source = parts_.find(edge.node);
    if (source == parts_.end()) return false;
    return source->second == Part::loop_switch ? edge.index == 1 : sides_.at(edge.node) == Side::runs;
  }

  /// Finds the condition's results that the body reads; the nodes that compute them must have no effects.
  bool find_again() {
    for (auto id = group_.nodes.rbegin(); id != group_.nodes.rend(); ++id) {
      const bool is_asked = sides_.at(*id) == Side::asks;
      const Part part = parts_.at(*id);
      const bool reads = is_asked ? again_.contains(*id) : part == Part::none || part == Part::next;
      if (!reads) continue;
      for (const StepEndpoint input : graph_.inputs_of(graph_.node(*id))) {
        const auto source = parts_.find(input.node);
        if (source == parts_.end() || source->second != Part::none || sides_.at(input.node) != Side::asks) continue;
        if (graph_.node(input.node).op->is_stateful || passes_on(graph_.node(input.node).op->role)) return false;
        again_.insert(input.node);
      }
    }
    return true;
  }

  /// A call is dead as a whole. The frame must be dead as a whole too, and the work of an iteration must depend on
  /// the frame's condition alone.
  bool lives_as_one() const {
    const Aliveness::Sides& around = aliveness_.of(condition_);
    for (const Aliveness::Side& side : around) {
      if (!side.read.node.is_valid() || parts_.contains(side.read.node)) return false;
    }
    const auto with_side = [&](std::int32_t side) {
      Aliveness::Sides sides = around;
      sides.push_back({{condition_, 0}, side});
      std::sort(sides.begin(), sides.end());
      return sides;
    };
    const Aliveness::Sides going = with_side(1), ended = with_side(0);
    return std::all_of(group_.nodes.begin(), group_.nodes.end(), [&](StepNodeId id) {
      const Aliveness::Sides& of = aliveness_.of(id);
      const bool is_asked = parts_.at(id) == Part::none && sides_.at(id) == Side::asks;
      switch (parts_.at(id)) {
        case Part::enter:
        case Part::capture:
          return std::includes(around.begin(), around.end(), of.begin(), of.end());
        case Part::loop_switch:
          return of == around;
        case Part::next:
          return of == going;
        case Part::exit:
          return aliveness_.of_waited_for(graph_.node(id)) == ended;
        default:
          return !is_asked || !graph_.node(id).op->is_stateful ||
                 std::includes(of.begin(), of.end(), around.begin(), around.end());
      }
    });
  }

  /// Exits of the variables.
  bool find_results(RaisedCall& by) const {
    std::unordered_map<StepNodeId, std::int32_t> result_of;
    for (const Variable& each : variables_) result_of.emplace(each.merge, static_cast<std::int32_t>(result_of.size()));
    for (const StepEndpoint output : group_.outputs) {
      if (parts_.at(output.node) != Part::exit) return false;
      const StepNodeId switched = graph_.inputs_of(graph_.node(output.node))[0].node;
      const StepNodeId merge = graph_.inputs_of(graph_.node(switched))[0].node;
      const auto variable = result_of.find(merge);
      if (variable == result_of.end()) return false;
      by.output_of.emplace(output, variable->second);
    }
    return std::all_of(group_.waited_for.begin(), group_.waited_for.end(),
                       [&](StepNodeId id) { return parts_.at(id) == Part::exit; });
  }

  const StepGraph& graph_;
  const FrameLayout::Frame& frame_;
  const Aliveness& aliveness_;
  const StepGroup& group_;
  StepNodeId condition_;
  std::vector<Variable> variables_;
  std::vector<StepNodeId> captures_;
  std::unordered_set<StepNodeId> entered_, again_;
  std::unordered_map<StepNodeId, Part> parts_;
  std::unordered_map<StepNodeId, Side> sides_;
};

/// Raises the frames that have none in them.
inline bool raise_inner_frames(StepGraph& graph, const FrameLayout& layout, std::size_t& number) {
  std::vector<std::ptrdiff_t> group_of_frame(layout.frames.size(), 0);
  for (const FrameLayout::Frame& frame : layout.frames) {
    if (frame.outer >= 0) group_of_frame[static_cast<std::size_t>(frame.outer)] = -1;
  }
  std::vector<std::size_t> frames;
  for (std::size_t f = 1; f < layout.frames.size(); ++f) {
    if (group_of_frame[f] < 0) continue;
    group_of_frame[f] = static_cast<std::ptrdiff_t>(frames.size());
    frames.push_back(f);
  }
  group_of_frame[0] = -1;
  GroupNumbers group_of(graph.nodes.size(), -1);
  for (const StepNodeId id : graph.nodes.indices()) {
    const bool enters = graph.node(id).op->role == OpRole::enter && !graph.node(id).is_fed_only;
    group_of[id] = group_of_frame[static_cast<std::size_t>(enters ? layout.gives_to[id] : layout.runs_in[id])];
  }
  Aliveness aliveness(graph, layout);
  for (const StepNodeId id : graph.nodes.indices()) aliveness.visit(id);
  const std::vector<StepGroup> groups = find_groups(graph, group_of);
  std::vector<RaisedCall> calls(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!LoopRaiser(graph, layout.frames[frames[g]], aliveness, groups[g]).raise(number, calls[g])) return false;
  }
  return put_calls(graph, group_of, groups, calls);
}

}  // namespace detail

std::optional<StepGraph> raise_frames(StepGraph graph) {
  constexpr int max_levels = 64;
  std::size_t number = 0;
  for (int level = 0;; ++level) {
    const FrameLayout layout = lay_out_frames(graph);
    if (layout.frames.size() == 1) break;
    if (level == max_levels || !detail::raise_inner_frames(graph, layout, number)) return std::nullopt;
  }
  if (!detail::BranchRaiser(number).raise(graph)) return std::nullopt;
  return graph;
}

}  // namespace dflow
