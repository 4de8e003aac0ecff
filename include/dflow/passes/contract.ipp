#pragma once

#include <dflow/passes/contract.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace dflow {

namespace detail {

class StepContraction {
 public:
  using GroupOf = IndexedVector<StepNodeId, std::ptrdiff_t>;
  using Replace =
      FunctionRef<StepReplacement(StepGraph&, std::size_t, std::span<const StepEndpoint>, std::span<const StepNodeId>)>;

  StepContraction(const StepGraph& step, const GroupOf& group_of, std::span<const StepGroup> groups)
      : step_(step),
        feeds_(step.feeds, step.nodes.size()),
        group_of_(group_of),
        groups_(groups),
        state_(step.nodes.size() + groups.size()),
        now_(step.nodes.size()) {}

  /// Nodes and groups in an order that puts each after the nodes that it waits for.
  bool run(Replace replace) {
    fresh_.graph = step_.graph;
    fresh_.made = step_.made;
    fresh_.calls = step_.calls;
    fresh_.recursion = step_.recursion;
    fresh_.gives_dead = step_.gives_dead;
    for (const StepEndpoint feed : step_.feeds) {
      if (!is_bare(feed) || fed_there_.contains(feed.node)) continue;
      StepNode bare = step_.node(feed.node);
      bare.is_fed_only = true;
      bare.call = -1;
      fed_there_.emplace(feed.node, fresh_.append(bare, {}, {}));
    }
    std::vector<StepNodeId> stack;
    for (const StepNodeId id : step_.nodes.indices()) {
      stack.push_back(id);
      while (!stack.empty()) {
        const StepNodeId top = stack.back();
        State& state = state_[unit(top)];
        if (state == State::there) {
          stack.pop_back();
          continue;
        }
        if (state == State::open) {  // all that it waits for is there
          state = State::there;
          stack.pop_back();
          group_of_[top] < 0 ? append_node(top) : append_group(static_cast<std::size_t>(group_of_[top]), replace);
          continue;
        }
        state = State::open;
        bool is_cyclic = false;
        for_each_needed(top, [&](StepNodeId source) {
          is_cyclic = is_cyclic || state_[unit(source)] == State::open;
          if (state_[unit(source)] == State::none) stack.push_back(source);
        });
        if (is_cyclic) return false;
      }
    }
    for (const StepEndpoint feed : step_.feeds) fresh_.feeds.push_back(edge(feed));
    for (const StepEndpoint fetch : step_.fetches) fresh_.fetches.push_back(edge(fetch));
    for (const StepNodeId target : step_.targets) fresh_.targets.push_back(node(target));
    return true;
  }

  StepGraph take() { return std::move(fresh_); }

 private:
  enum class State : char { none, open, there };

  std::size_t unit(StepNodeId id) const {
    return group_of_[id] < 0 ? id.position() : step_.nodes.size() + static_cast<std::size_t>(group_of_[id]);
  }

  template <class F>
  void for_each_needed(StepNodeId id, F&& see) {
    const auto see_edges = [&](std::span<const StepEndpoint> edges, std::span<const StepNodeId> controls) {
      for (const StepEndpoint input : edges) {
        if (!is_bare(input)) see(input.node);
      }
      for (const StepNodeId control : controls) {
        if (control.is_valid()) see(control);
      }
    };
    if (group_of_[id] < 0) {
      see_edges(step_.inputs_of(step_.node(id)), step_.controls_of(step_.node(id)));
    } else {
      const StepGroup& group = groups_[static_cast<std::size_t>(group_of_[id])];
      see_edges(group.inputs, group.controls);
    }
  }

  /// A fed edge of a node that is in a group: a node of its own stands for it from now on.
  bool is_bare(StepEndpoint edge) const { return group_of_[edge.node] >= 0 && feeds_.contains(edge); }

  StepEndpoint edge(StepEndpoint old) const {
    if (group_of_[old.node] < 0) return {now_[old.node], old.index};
    if (feeds_.contains(old)) return {fed_there_.at(old.node), old.index};
    return output_.at(old);
  }
  StepNodeId node(StepNodeId old) const {
    return !old.is_valid() ? old : group_of_[old] < 0 ? now_[old] : end_.at(old);
  }

  void take_edges(std::span<const StepEndpoint> inputs, std::span<const StepNodeId> controls) {
    inputs_.clear();
    controls_.clear();
    for (const StepEndpoint input : inputs) inputs_.push_back(edge(input));
    for (const StepNodeId control : controls) controls_.push_back(node(control));
  }

  void append_node(StepNodeId id) {
    take_edges(step_.inputs_of(step_.node(id)), step_.controls_of(step_.node(id)));
    now_[id] = fresh_.append(step_.node(id), inputs_, controls_);
  }

  void append_group(std::size_t number, Replace replace) {
    const StepGroup& group = groups_[number];
    take_edges(group.inputs, group.controls);
    const StepReplacement by = replace(fresh_, number, inputs_, controls_);
    for (std::size_t i = 0; i < group.outputs.size(); ++i) output_.emplace(group.outputs[i], by.outputs[i]);
    for (std::size_t i = 0; i < group.waited_for.size(); ++i) end_.emplace(group.waited_for[i], by.waited_for[i]);
  }

  const StepGraph& step_;
  EdgePositions<StepNodeId> feeds_;
  const GroupOf& group_of_;
  std::span<const StepGroup> groups_;
  StepGraph fresh_;
  std::vector<State> state_;  ///< of nodes, then of groups
  IndexedVector<StepNodeId, StepNodeId> now_;
  std::unordered_map<StepNodeId, StepNodeId> fed_there_;
  std::unordered_map<StepEndpoint, StepEndpoint, EndpointHash> output_;  ///< of groups
  std::unordered_map<StepNodeId, StepNodeId> end_;                       ///< of nodes in groups
  std::vector<StepEndpoint> inputs_;
  std::vector<StepNodeId> controls_;
};

}  // namespace detail

std::vector<StepGroup> find_groups(const StepGraph& step, const IndexedVector<StepNodeId, std::ptrdiff_t>& group_of) {
  std::vector<StepGroup> groups;
  const EdgePositions<StepNodeId> feeds(step.feeds, step.nodes.size());
  std::unordered_set<StepEndpoint, EndpointHash> outputs;
  std::unordered_set<StepNodeId> waited_for;
  std::vector<std::unordered_set<StepEndpoint, EndpointHash>> inputs;
  std::vector<std::unordered_set<StepNodeId>> controls;
  for (const StepNodeId id : step.nodes.indices()) {
    if (group_of[id] < 0) continue;
    const auto number = static_cast<std::size_t>(group_of[id]);
    if (number >= groups.size()) groups.resize(number + 1);
    groups[number].nodes.push_back(id);
  }
  inputs.resize(groups.size());
  controls.resize(groups.size());
  const auto group = [&](StepNodeId id) { return static_cast<std::size_t>(group_of[id]); };
  const auto read_outside = [&](StepEndpoint edge) {
    if (group_of[edge.node] < 0 || feeds.contains(edge)) return;
    if (outputs.insert(edge).second) groups[group(edge.node)].outputs.push_back(edge);
  };
  const auto wait_outside = [&](StepNodeId id) {
    if (group_of[id] >= 0 && waited_for.insert(id).second) groups[group(id)].waited_for.push_back(id);
  };
  for (const StepNodeId id : step.nodes.indices()) {
    const StepNode& node = step.node(id);
    for (const StepEndpoint input : step.inputs_of(node)) {
      const bool is_fed = feeds.contains(input);
      if (group_of[input.node] == group_of[id] && !is_fed) continue;
      read_outside(input);
      if (group_of[id] < 0 || (is_free_constant(step.node(input.node)) && !is_fed)) continue;
      if (inputs[group(id)].insert(input).second) groups[group(id)].inputs.push_back(input);
    }
    for (const StepNodeId control : step.controls_of(node)) {
      if (!control.is_valid() || group_of[control] == group_of[id]) continue;
      wait_outside(control);
      if (group_of[id] >= 0 && controls[group(id)].insert(control).second) {
        groups[group(id)].controls.push_back(control);
      }
    }
  }
  for (const StepEndpoint fetch : step.fetches) read_outside(fetch);
  for (const StepNodeId target : step.targets) wait_outside(target);
  return groups;
}

bool contract(StepGraph& step, const IndexedVector<StepNodeId, std::ptrdiff_t>& group_of,
              std::span<const StepGroup> groups,
              FunctionRef<StepReplacement(StepGraph& fresh, std::size_t group, std::span<const StepEndpoint> inputs,
                                          std::span<const StepNodeId> controls)>
                  replace) {
  detail::StepContraction contraction(step, group_of, groups);
  if (!contraction.run(replace)) return false;
  step = contraction.take();
  return true;
}

}  // namespace dflow
