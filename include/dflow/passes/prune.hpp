#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/step_graph.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace dflow {

namespace detail {
template <class Source>
class Pruner;

/// The number of a node among the nodes that are fed.
using FedId = StrongIndex<struct FedTag>;

/// The working memory for nodes that are numbered by `Index`.
template <class Index>
class BasicPruneScratch {
 private:
  template <class Source>
  friend class Pruner;
  IndexedVector<Index, std::uint32_t> marked_;  ///< the call that last needed the node
  IndexedVector<Index, std::uint32_t> fed_;     ///< the call that last fed one of its outputs
  IndexedVector<Index, FedId> fed_id_;          ///< of nodes that this call feeds
  IndexedVector<Index, StepNodeId> new_id_;     ///< of nodes that this call needs
  std::uint32_t call_ = 0;
};
}  // namespace detail

/// Working memory of `prune`, to be used again: the cost of a small step of a large graph then depends on the step
/// alone.
///
/// Thread safety: used by one call at a time.
using PruneScratch = detail::BasicPruneScratch<NodeId>;

/// Working memory for calls in many threads: one takes it, others meanwhile have their own.
///
/// Thread safety: safe.
class SparePruneScratch {
 public:
  /// Never null.
  std::unique_ptr<PruneScratch> take();
  void give_back(std::unique_ptr<PruneScratch> scratch) noexcept;

 private:
  std::mutex mutex_;
  std::unique_ptr<PruneScratch> spare_;  ///< null while a call has it
};

/// The part of a graph that a step needs: everything the fetches and targets depend on, stopping at feeds. A
/// placeholder that is fed and a target needs nothing. `visit` is called with the id that each node has in the graph
/// and with the step's own node for it.
///
/// The graph may grow meanwhile.
/// Errors: InvalidArgument if an endpoint does not belong to the graph, or is fed twice.
StepGraph prune(
    const GraphStore& graph, std::span<const Endpoint> feeds, std::span<const Endpoint> fetches,
    std::span<const NodeId> targets, PruneScratch& scratch,
    FunctionRef<void(NodeId, StepNode&)> visit = [](NodeId, StepNode&) {});

/// The same with working memory of its own.
StepGraph prune(const GraphStore& graph, std::span<const Endpoint> feeds, std::span<const Endpoint> fetches,
                std::span<const NodeId> targets);

/// Drops the nodes of a step graph that nothing needs any more, and renumbers the rest.
StepGraph prune(StepGraph graph);

/// For each fetch of a pruned graph, which of its feeds it depends on.
std::vector<std::vector<bool>> needed_feeds(const StepGraph& graph);

}  // namespace dflow
