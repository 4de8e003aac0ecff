#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/prune.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// The parts of a graph that `Pruner` reads.
struct PrunedStore {
  using Index = NodeId;
  const GraphStore& store;
  GraphStore::Nodes nodes;

  std::size_t size() const { return nodes.size(); }
  const Node& node(NodeId id) const { return nodes[id]; }
  StepNode step_node(NodeId id) const { return StepNode(node(id)); }
  std::span<const Endpoint> inputs(NodeId id) const { return node(id).inputs; }
  std::span<const NodeId> controls(NodeId id) const { return node(id).control_inputs; }
  std::vector<NodeId> next_iterations(NodeId merge) const {
    std::vector<NodeId> found = store.next_iterations(merge);
    std::erase_if(found, [&](NodeId id) { return id.position() >= size(); });
    return found;
  }
};

/// The same of a step graph.
struct PrunedStep {
  using Index = StepNodeId;
  explicit PrunedStep(const StepGraph& of) : graph(of) {
    for (const StepNodeId id : graph.nodes.indices()) {
      const StepNode& node = graph.node(id);
      if (node.op->role == OpRole::next_iteration && !node.is_fed_only) next[inputs(id)[1].node].push_back(id);
    }
  }
  const StepGraph& graph;
  std::unordered_map<StepNodeId, std::vector<StepNodeId>> next;

  std::size_t size() const { return graph.nodes.size(); }
  const Node& node(StepNodeId id) const { return *graph.node(id); }
  StepNode step_node(StepNodeId id) const { return graph.node(id); }
  std::span<const StepEndpoint> inputs(StepNodeId id) const { return graph.inputs_of(graph.node(id)); }
  std::span<const StepNodeId> controls(StepNodeId id) const { return graph.controls_of(graph.node(id)); }
  std::vector<StepNodeId> next_iterations(StepNodeId merge) const {
    const auto found = next.find(merge);
    return found == next.end() ? std::vector<StepNodeId>() : found->second;
  }
};

/// Marks the nodes that a step needs, then lists them with new ids.
template <class Source>
class Pruner {
 public:
  using Index = typename Source::Index;
  using Edge = BasicEndpoint<Index>;
  using Scratch = BasicPruneScratch<Index>;

  Pruner(const Source& source, std::span<const Edge> feeds, std::span<const Edge> fetches,
         std::span<const Index> targets, Scratch& scratch)
      : source_(source),
        feeds_(feeds),
        fetches_(fetches),
        targets_(targets),
        scratch_(scratch),
        count_(source.size()) {}

  StepGraph prune(FunctionRef<void(Index, StepNode&)> visit) {
    open();
    mark();
    // A fed node whose kernel need not run stays as a bare placeholder of its edge.
    const std::size_t num_needed = needed_.size();
    for (const Edge feed : feeds_) need(feed.node);
    stack_.clear();
    std::vector<Index> fed_only(needed_.begin() + static_cast<std::ptrdiff_t>(num_needed), needed_.end());
    sort(fed_only);
    sort_needed();
    for (std::size_t k = 0; k < needed_.size(); ++k) scratch_.new_id_[needed_[k]] = StepNodeId(k);

    StepGraph pruned;
    pruned.nodes.reserve(needed_.size());
    pruned.inputs.reserve(num_inputs_);
    pruned.control_inputs.reserve(num_controls_);
    auto next_fed_only = fed_only.begin();
    std::vector<StepEndpoint> inputs;
    std::vector<StepNodeId> controls;
    for (const Index id : needed_) {
      StepNode node = source_.step_node(id);
      inputs.clear();
      controls.clear();
      if (next_fed_only != fed_only.end() && *next_fed_only == id) {
        ++next_fed_only;
        node.is_fed_only = true;
      } else {
        // A fed edge of a node that is not needed for itself is in the graph too: as its placeholder.
        for (const Edge input : source_.inputs(id)) inputs.push_back(renumbered(input));
        for (const Index control : source_.controls(id)) controls.push_back(new_id(control));
      }
      pruned.append(node, inputs, controls);
      visit(id, pruned.nodes.back());
    }
    for (const Edge feed : feeds_) pruned.feeds.push_back(renumbered(feed));
    for (const Edge fetch : fetches_) pruned.fetches.push_back(renumbered(fetch));
    for (const Index target : targets_) pruned.targets.push_back(new_id(target));
    return pruned;
  }

 private:
  /// If much of the graph is needed, reading the marks is quicker.
  void sort_needed() {
    if (needed_.size() * 8 < count_) return sort(needed_);
    needed_.clear();
    for (const Index id : IndexRange<Index>(count_)) {
      if (is_needed(id)) needed_.push_back(id);
    }
  }
  static void sort(std::vector<Index>& ids) {
    if (!std::is_sorted(ids.begin(), ids.end())) std::sort(ids.begin(), ids.end());
  }

  void open() {
    if (scratch_.marked_.size() < count_) {
      const std::size_t room = std::max(count_, scratch_.marked_.size() * 2);
      scratch_.marked_.resize(room);
      scratch_.fed_.resize(room);
      scratch_.fed_id_.resize(room);
      scratch_.new_id_.resize(room);
    }
    if (++scratch_.call_ == 0) {  // the numbers of calls have come round
      std::fill(scratch_.marked_.begin(), scratch_.marked_.end(), 0u);
      std::fill(scratch_.fed_.begin(), scratch_.fed_.end(), 0u);
      scratch_.call_ = 1;
    }
  }

  bool is_needed(Index id) const noexcept { return scratch_.marked_[id] == scratch_.call_; }
  /// None for a node that the step does not need.
  StepNodeId new_id(Index id) const noexcept { return is_needed(id) ? scratch_.new_id_[id] : StepNodeId(); }
  StepEndpoint renumbered(Edge edge) const noexcept { return {new_id(edge.node), edge.index}; }

  void check(Index id, std::string_view role) const {
    if (id.is_valid() && id.position() < count_) return;
    const std::string which = id.is_valid() ? str_cat("node number ", id.value()) : std::string("no node");
    throw_error(Status::invalid_argument(str_cat("a ", role, " is of ", which, "; the graph has ", count_, " nodes")));
  }

  void check_output(Edge edge) const {
    const Node& node = source_.node(edge.node);
    if (edge.index >= 0 && static_cast<std::size_t>(edge.index) < node.outputs.size()) return;
    throw_error(Status::invalid_argument(str_cat("'", node.name, "' has no output ", edge.index)));
  }

  void need(Index id) {
    if (is_needed(id)) return;
    scratch_.marked_[id] = scratch_.call_;
    needed_.push_back(id);
    stack_.push_back(id);
  }
  bool is_node_fed(Index id) const noexcept { return scratch_.fed_[id] == scratch_.call_; }
  void need_edge(Edge edge) {
    if (is_node_fed(edge.node) && fed_.contains({scratch_.fed_id_[edge.node], edge.index})) return;
    need(edge.node);
  }
  /// A node that waits for a placeholder, or for the argument of a function, waits for its feed. Any other fed node
  /// still runs for the nodes that wait for it.
  void need_control(Index id) {
    const OpRole role = source_.node(id).op->role;
    if (!is_node_fed(id) || (role != OpRole::placeholder && role != OpRole::argument)) need(id);
  }

  void mark_feeds() {
    FedId next(0);
    std::vector<BasicEndpoint<FedId>> numbered;
    numbered.reserve(feeds_.size());
    for (const Edge feed : feeds_) {
      check(feed.node, "feed");
      check_output(feed);
      if (!is_node_fed(feed.node)) scratch_.fed_id_[feed.node] = next++;
      scratch_.fed_[feed.node] = scratch_.call_;
      numbered.push_back({scratch_.fed_id_[feed.node], feed.index});
    }
    fed_ = EdgePositions<FedId>(numbered, next.position());
    if (const std::int32_t twice = fed_.twice(); twice >= 0) {
      const auto [node, index] = feeds_[static_cast<std::size_t>(twice)];
      const std::string output = index == 0 ? "" : str_cat(":", index);
      throw_error(Status::invalid_argument(str_cat("'", source_.node(node).name, output, "' is fed twice")));
    }
  }

  void mark() {
    mark_feeds();
    for (const Edge fetch : fetches_) {
      check(fetch.node, "fetch");
      check_output(fetch);
      need_edge(fetch);
    }
    for (const Index target : targets_) {
      check(target, "target");
      need_control(target);
    }
    while (!stack_.empty()) {
      const Index id = stack_.back();
      stack_.pop_back();
      const std::span<const Edge> inputs = source_.inputs(id);
      const std::span<const Index> controls = source_.controls(id);
      num_inputs_ += inputs.size();
      num_controls_ += controls.size();
      const bool is_kept = source_.node(id).op->role == OpRole::kept_value;  // of the call's bodies, fed or not
      for (const Edge input : inputs) is_kept ? need(input.node) : need_edge(input);
      for (const Index control : controls) need_control(control);
      if (source_.node(id).op->role == OpRole::merge) {
        for (const Index next : source_.next_iterations(id)) need(next);
      }
    }
  }

  const Source& source_;
  std::span<const Edge> feeds_;
  std::span<const Edge> fetches_;
  std::span<const Index> targets_;
  Scratch& scratch_;
  const std::size_t count_;
  std::size_t num_inputs_ = 0;
  std::size_t num_controls_ = 0;
  std::vector<Index> needed_;
  std::vector<Index> stack_;
  EdgePositions<FedId> fed_;
};

}  // namespace detail

std::unique_ptr<PruneScratch> SparePruneScratch::take() {
  std::unique_ptr<PruneScratch> taken;
  {
    const std::lock_guard lock(mutex_);
    taken = std::move(spare_);
  }
  return taken != nullptr ? std::move(taken) : std::make_unique<PruneScratch>();
}

void SparePruneScratch::give_back(std::unique_ptr<PruneScratch> scratch) noexcept {
  const std::lock_guard lock(mutex_);
  spare_.swap(scratch);
}

StepGraph prune(const GraphStore& graph, std::span<const Endpoint> feeds, std::span<const Endpoint> fetches,
                std::span<const NodeId> targets, PruneScratch& scratch, FunctionRef<void(NodeId, StepNode&)> visit) {
  const detail::PrunedStore source{graph, graph.nodes()};
  StepGraph pruned = detail::Pruner(source, feeds, fetches, targets, scratch).prune(visit);
  pruned.graph = graph.keep_nodes();
  return pruned;
}

StepGraph prune(const GraphStore& graph, std::span<const Endpoint> feeds, std::span<const Endpoint> fetches,
                std::span<const NodeId> targets) {
  PruneScratch scratch;
  return prune(graph, feeds, fetches, targets, scratch);
}

StepGraph prune(StepGraph graph) {
  detail::BasicPruneScratch<StepNodeId> scratch;
  const detail::PrunedStep source{graph};
  StepGraph pruned =
      detail::Pruner(source, graph.feeds, graph.fetches, graph.targets, scratch).prune([](StepNodeId, StepNode&) {});
  pruned.graph = std::move(graph.graph);
  pruned.made = std::move(graph.made);
  pruned.calls = std::move(graph.calls);
  pruned.recursion = graph.recursion;
  pruned.gives_dead = graph.gives_dead;
  pruned.drop_unused_made();
  return pruned;
}

std::vector<std::vector<bool>> needed_feeds(const StepGraph& graph) {
  const EdgePositions<StepNodeId> feeds(graph.feeds, graph.nodes.size());
  const std::size_t num_words = (graph.feeds.size() + 63) / 64;
  std::vector<std::uint64_t> words(graph.nodes.size() * num_words);  // for each node, the feeds it depends on
  const auto of = [&](StepNodeId id) { return std::span(words).subspan(id.position() * num_words, num_words); };
  const auto add_edge = [&](std::span<std::uint64_t> to, StepEndpoint edge) {
    if (const std::int32_t feed = feeds.find(edge); feed >= 0) {
      to[static_cast<std::size_t>(feed) / 64] |= std::uint64_t{1} << (feed % 64);
    } else {
      std::transform(to.begin(), to.end(), of(edge.node).begin(), to.begin(), std::bit_or<>());
    }
  };
  for (const StepNodeId id : graph.nodes.indices()) {
    const StepNode& node = graph.node(id);
    for (const StepEndpoint input : graph.inputs_of(node)) add_edge(of(id), input);
    // A node that is only fed runs no kernel to wait for.
    for (const StepNodeId control : graph.controls_of(node)) {
      if (control.is_valid())
        std::transform(of(id).begin(), of(id).end(), of(control).begin(), of(id).begin(), std::bit_or<>());
    }
  }
  std::vector<std::vector<bool>> needed;
  std::vector<std::uint64_t> of_fetch(num_words);
  for (const StepEndpoint fetch : graph.fetches) {
    std::fill(of_fetch.begin(), of_fetch.end(), 0);
    add_edge(of_fetch, fetch);
    std::vector<bool>& bits = needed.emplace_back(graph.feeds.size());
    for (std::size_t f = 0; f < bits.size(); ++f) bits[f] = (of_fetch[f / 64] >> (f % 64) & 1) != 0;
  }
  return needed;
}

}  // namespace dflow
