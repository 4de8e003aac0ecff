#pragma once

/// Public: a graph as a value, for files and other processes.

#include <dflow/graph/graph.hpp>
#include <dflow/graph/node_def.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

class GraphStore;

/// A graph as data: what is saved, sent, merged and compared. `to_graph_def` makes one, `import_graph` (op/import.hpp)
/// checks one and builds the graph.
///
/// Thread safety: a value type.
struct GraphDef {
  /// The newest version that this library reads. It writes the oldest that can say what is to be said: one for graphs
  /// without functions.
  static constexpr std::uint32_t current_version = 2;
  static constexpr std::uint32_t functions_version = 2;  ///< the first with `NodeDef::function`
  static constexpr std::size_t max_nodes = 10'000'000;
  /// In all attributes together that are lists of shapes: a shape may take one byte in a file, and takes 72 in memory.
  static constexpr std::size_t max_listed_shapes = 1'000'000;
  /// What the items of all lists (nodes, inputs, attributes) may take in memory that are read from so many bytes of the
  /// binary form: graphs take up to 12 times as much, a malformed one 65 times.
  static constexpr std::uint64_t memory_for(std::uint64_t bytes) noexcept {
    constexpr std::uint64_t slack = std::uint64_t{16} << 20, times = 20;
    return bytes > (~std::uint64_t{0} - slack) / times ? ~std::uint64_t{0} : slack + times * bytes;
  }

  std::uint32_t version = 1;  ///< written as a later one where the nodes need that
  std::uint64_t seed = 0;     ///< GraphOptions::seed
  std::vector<NodeDef> nodes;
  /// Named lists of nodes.
  std::vector<std::pair<std::string, std::vector<std::string>>> collections;

  friend bool operator==(const GraphDef&, const GraphDef&) = default;
};

/// The version that a def is written in: its own, or the first that has all that its nodes say.
std::uint32_t written_version(const GraphDef& def);

/// The graph as data. Nodes stand in the order of their ids, so inputs come first; attributes equal to their op's
/// defaults are left out. Tensors share their elements with the graph's.
///
/// Thread safety: the graph may grow meanwhile; what is new then may be missing.
GraphDef to_graph_def(const Graph& graph);
/// The nodes from number `first` on, without collections: what the graph has grown by (`ImportOptions::goes_on`).
GraphDef to_graph_def(const GraphStore& graph, std::size_t first);

/// The part of a step that one device runs, as data: what goes to the task that the device belongs to
/// (`to_step_graph_def`, passes/step_graph_def.hpp).
struct StepGraphDef {
  GraphDef graph;
  std::vector<std::string> targets;  ///< names of nodes that must run

  friend bool operator==(const StepGraphDef&, const StepGraphDef&) = default;
};

}  // namespace dflow
