#pragma once

/// Public: a graph copied into another one, with edges replaced.

#include <dflow/graph/graph.hpp>

#include <cstddef>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

/// Edges, each with the edge that is read in its place.
///
/// ```cpp
/// df::EdgeMap map;
/// map.add(x, rows).add(y, labels);
/// ```
/// Thread safety: a value type.
class EdgeMap {
 public:
  /// Element types are compared when the map is used.
  EdgeMap& add(const AnyOutput& edge, const AnyOutput& instead);
  template <Element T>
  EdgeMap& add(const Output<T>& edge, const std::type_identity_t<Output<T>>& instead) {
    return add(static_cast<const AnyOutput&>(edge), static_cast<const AnyOutput&>(instead));
  }

  const std::vector<std::pair<AnyOutput, AnyOutput>>& pairs() const noexcept { return pairs_; }

 private:
  std::vector<std::pair<AnyOutput, AnyOutput>> pairs_;
};

struct GraphMergeOptions {
  /// Names of the new nodes become "prefix/name"; the prefix is made unique. Empty: names stay as they are.
  std::string prefix = {};
  /// Edges of the graph that is merged, each with the edge that the copies read instead.
  EdgeMap input_map = {};
};

/// The result of a merge: for each node of the merged graph, its copy.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument for a handle that is empty or of another graph than the merged one, for a name if the merged
/// graph is gone, and for the use of a copy whose graph is gone. NotFound for a name, or a node, that the merged graph
/// did not have at the time of the merge.
class MergedGraph {
 public:
  MergedGraph(const GraphStore* from, GraphStore* into, std::vector<NodeId> copies, std::string prefix)
      : from_(from), into_(into), copies_(std::move(copies)), prefix_(std::move(prefix)) {}

  Operation operation(const Operation& of) const;
  AnyOutput output(const AnyOutput& of) const;
  /// The copy of an edge: `merged(loss)`.
  template <Element T>
  Output<T> operator()(const Output<T>& of) const {
    return Output<T>::unchecked(output(of));
  }
  Operation operator()(const Operation& of) const { return operation(of); }
  /// Finds the copy by the node's name in the merged graph; "name:1" for another output than the first.
  Operation operation(std::string_view name) const;
  AnyOutput output(std::string_view name) const;
  /// The prefix of the copies' names, made unique; "" for none.
  const std::string& prefix() const noexcept { return prefix_; }

 private:
  GraphReference from_, into_;
  std::vector<NodeId> copies_;
  std::string prefix_;
};

/// Appends copies of all nodes of `from` to `into`, inside its current scopes: functions with their bodies, loops of
/// either form, and collections. Copies keep the places in the program, the attributes, seeds included, and the device
/// constraints of their originals. A variable gets state of its own, under its new name, unless it has a `shared_name`.
/// `from` and `into` may be one graph, which then has all its nodes twice. Any number of graphs may be merged into one.
///
/// ```cpp
/// const df::EdgeMap inputs = df::EdgeMap().add(x, images);
/// df::MergedGraph encoder = df::merge(graph, trained, {.prefix = "encoder", .input_map = inputs});
/// auto code = encoder(h);                           // of a handle
/// auto same = encoder.output("dense/BiasAdd");      // or by its name in `trained`
/// ```
/// Thread safety: builds `into`, see Graph. `from` may grow meanwhile, and the copy may lack its newest nodes.
/// Errors: InvalidArgument for a name that `into` has already, and for an edge of another element type or shape than a
/// node takes. InvalidArgument also for an input map that names edges of other graphs, an edge twice, or an edge that
/// no node reads. `into` is unchanged then.
MergedGraph merge(Graph& into, const Graph& from, const GraphMergeOptions& options = {},
                  std::source_location where = std::source_location::current());

namespace detail {
std::vector<AnyOutput> any_substitute(std::span<const AnyOutput> edges, const EdgeMap& map, std::string_view name,
                                      std::source_location where);
}  // namespace detail

/// Returns y computed with the replacements of `map` in place of its edges. The nodes between the mapped edges and y
/// are copied, with names "name/...". All else is shared, variables included. Returns y itself if it depends on none of
/// the mapped edges.
///
/// ```cpp
/// auto evaluated = df::substitute(loss, df::EdgeMap().add(x, test_rows).add(y, test_labels));
/// ```
/// Thread safety: builds, see Graph.
/// Errors: InvalidArgument for edges that are empty or of another graph, an edge that is mapped twice, and an edge of
/// another element type or shape than a node takes. The graph is unchanged then.
template <Element T>
Output<T> substitute(const Output<T>& y, const EdgeMap& map, std::string_view name = "given",
                     std::source_location where = std::source_location::current()) {
  const AnyOutput& edge = y;
  return Output<T>::unchecked(detail::any_substitute({&edge, 1}, map, name, where).front());
}

}  // namespace dflow
