#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/prune.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace dflow {

/// Marks what a step needs, then copies (or moves) it over, ids renumbered.
class Pruner {
 public:
  Pruner(std::span<const Endpoint> feeds, std::span<const Endpoint> fetches, std::span<const NodeId> targets,
         PruneScratch& scratch)
      : feeds_(feeds), fetches_(fetches), targets_(targets), scratch_(scratch) {}

  /// `nodes` is indexable by NodeId; `take` gives the node that goes into the step graph.
  template <class Nodes, class Take>
  StepGraph prune(Nodes& nodes, std::size_t count, Take&& take) {
    open(count);
    mark(nodes);
    // What is fed and whose kernel need not run stays as a bare placeholder of its edge.
    const std::size_t num_needed = needed_.size();
    for (const Endpoint feed : feeds_) need(feed.node);
    stack_.clear();
    std::vector<NodeId> fed_only(needed_.begin() + static_cast<std::ptrdiff_t>(num_needed), needed_.end());
    sort(fed_only);
    sort_needed();
    for (std::size_t k = 0; k < needed_.size(); ++k) scratch_.new_id_[at(needed_[k])] = static_cast<NodeId>(k);

    StepGraph pruned;
    pruned.nodes.reserve(needed_.size());
    auto next_fed_only = fed_only.begin();
    for (const NodeId id : needed_) {
      Node& node = pruned.nodes.emplace_back(take(id));
      if (next_fed_only != fed_only.end() && *next_fed_only == id) {
        ++next_fed_only;
        node.inputs.clear();
        node.control_inputs.clear();
        node.is_fed_only = true;
      }
      rename(node);
    }
    for (const Endpoint feed : feeds_) pruned.feeds.push_back({new_id(feed.node), feed.index});
    for (const Endpoint fetch : fetches_) pruned.fetches.push_back({new_id(fetch.node), fetch.index});
    for (const NodeId target : targets_) pruned.targets.push_back(new_id(target));
    return pruned;
  }

 private:
  static std::size_t at(NodeId id) noexcept { return static_cast<std::size_t>(id); }
  /// Where much of the graph is needed, reading the marks is quicker.
  void sort_needed() {
    if (needed_.size() * 8 < count_) return sort(needed_);
    needed_.clear();
    for (std::size_t i = 0; i < count_; ++i) {
      if (is_needed(static_cast<NodeId>(i))) needed_.push_back(static_cast<NodeId>(i));
    }
  }
  static void sort(std::vector<NodeId>& ids) {
    if (!std::is_sorted(ids.begin(), ids.end())) std::sort(ids.begin(), ids.end());
  }

  void open(std::size_t count) {
    if (scratch_.marked_.size() < count) {
      const std::size_t room = std::max(count, scratch_.marked_.size() * 2);
      scratch_.marked_.resize(room);
      scratch_.fed_.resize(room);
      scratch_.new_id_.resize(room);
    }
    if (++scratch_.call_ == 0) {  // the numbers of calls have come round
      std::fill(scratch_.marked_.begin(), scratch_.marked_.end(), 0u);
      std::fill(scratch_.fed_.begin(), scratch_.fed_.end(), 0u);
      scratch_.call_ = 1;
    }
    count_ = count;
  }

  bool is_needed(NodeId id) const noexcept { return scratch_.marked_[at(id)] == scratch_.call_; }
  /// -1 for what the step does not need.
  NodeId new_id(NodeId id) const noexcept { return is_needed(id) ? scratch_.new_id_[at(id)] : -1; }

  void check(NodeId id) const {
    if (id < 0 || at(id) >= count_) throw Error(invalid_argument("an edge does not belong to the graph"));
  }

  template <class Nodes>
  static void check_output(Endpoint edge, const Nodes& nodes) {
    const Node& node = nodes[at(edge.node)];
    if (edge.index >= 0 && static_cast<std::size_t>(edge.index) < node.outputs.size()) return;
    throw Error(invalid_argument(str_cat("'", node.name, "' has no output ", edge.index)));
  }

  void need(NodeId id) {
    if (is_needed(id)) return;
    scratch_.marked_[at(id)] = scratch_.call_;
    needed_.push_back(id);
    stack_.push_back(id);
  }
  bool is_node_fed(NodeId id) const noexcept { return scratch_.fed_[at(id)] == scratch_.call_; }
  void need_edge(Endpoint edge) {
    if (is_node_fed(edge.node) && fed_.contains(edge)) return;
    need(edge.node);
  }
  /// What waits for a placeholder waits for its feed. Another node that is fed still runs for those that wait for it.
  template <class Nodes>
  void need_control(NodeId id, const Nodes& nodes) {
    if (!is_node_fed(id) || nodes[at(id)].op->role != OpRole::placeholder) need(id);
  }

  template <class Nodes>
  void mark(const Nodes& nodes) {
    for (const Endpoint feed : feeds_) {
      check(feed.node);
      check_output(feed, nodes);
      scratch_.fed_[at(feed.node)] = scratch_.call_;
    }
    fed_ = EdgePositions(feeds_);
    if (const std::int32_t twice = fed_.twice(); twice >= 0) {
      const auto [node, index] = feeds_[static_cast<std::size_t>(twice)];
      const std::string output = index == 0 ? "" : str_cat(":", index);
      throw Error(invalid_argument(str_cat("'", nodes[at(node)].name, output, "' is fed twice")));
    }
    for (const Endpoint fetch : fetches_) {
      check(fetch.node);
      check_output(fetch, nodes);
      need_edge(fetch);
    }
    for (const NodeId target : targets_) {
      check(target);
      need_control(target, nodes);
    }
    while (!stack_.empty()) {
      const NodeId id = stack_.back();
      stack_.pop_back();
      for (const Endpoint input : nodes[at(id)].inputs) need_edge(input);
      for (const NodeId control : nodes[at(id)].control_inputs) need_control(control, nodes);
    }
  }

  void rename(Node& node) const noexcept {
    // A fed edge of a node that is not needed for itself is in the graph too: as its placeholder.
    for (Endpoint& input : node.inputs) input.node = new_id(input.node);
    for (NodeId& control : node.control_inputs) control = new_id(control);
    node.colocated_with = -1;
  }

  std::span<const Endpoint> feeds_;
  std::span<const Endpoint> fetches_;
  std::span<const NodeId> targets_;
  PruneScratch& scratch_;
  std::size_t count_ = 0;
  std::vector<NodeId> needed_;
  std::vector<NodeId> stack_;
  EdgePositions fed_;
};

DFLOW_INLINE StepGraph prune(const GraphStore& graph, std::span<const Endpoint> feeds,
                             std::span<const Endpoint> fetches, std::span<const NodeId> targets, PruneScratch& scratch,
                             FunctionRef<void(NodeId, Node&)> visit) {
  const GraphStore::Nodes nodes = graph.nodes();
  return Pruner(feeds, fetches, targets, scratch).prune(nodes, nodes.size(), [&](NodeId id) {
    Node copy = nodes[static_cast<std::size_t>(id)];
    visit(id, copy);
    return copy;
  });
}

DFLOW_INLINE StepGraph prune(const GraphStore& graph, std::span<const Endpoint> feeds,
                             std::span<const Endpoint> fetches, std::span<const NodeId> targets) {
  PruneScratch scratch;
  return prune(graph, feeds, fetches, targets, scratch);
}

DFLOW_INLINE StepGraph prune(StepGraph graph) {
  PruneScratch scratch;
  std::vector<Node>& nodes = graph.nodes;
  return Pruner(graph.feeds, graph.fetches, graph.targets, scratch).prune(nodes, nodes.size(), [&](NodeId id) {
    return std::move(nodes[static_cast<std::size_t>(id)]);
  });
}

}  // namespace dflow
