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

/// A graph as data, to save, send, merge and compare. `to_graph_def` makes one, `import_graph` (op/import.hpp) checks
/// one and builds the graph.
///
/// Thread safety: a value type.
struct GraphDef {
  /// The newest version that this library reads. It writes the oldest version that can express the graph: version 1 for
  /// graphs without functions.
  static constexpr std::uint32_t current_version = 2;
  static constexpr std::uint32_t functions_version = 2;  ///< the first with `NodeDef::function`
  static constexpr std::size_t max_nodes = 10'000'000;
  /// The most shapes in all attributes together that are lists of shapes: a shape may take one byte in a file, and
  /// takes 72 in memory.
  static constexpr std::size_t max_listed_shapes = 1'000'000;
  /// The memory limit for the items of all lists (nodes, inputs, attributes) read from `bytes` bytes of the binary
  /// form. Graphs take up to 12 times as much, a malformed graph 65 times.
  static constexpr std::uint64_t memory_for(std::uint64_t bytes) noexcept {
    constexpr std::uint64_t slack = std::uint64_t{16} << 20, times = 20;
    return bytes > (~std::uint64_t{0} - slack) / times ? ~std::uint64_t{0} : slack + times * bytes;
  }

  std::uint32_t version = 1;  ///< written as a later version if the nodes need it
  std::uint64_t seed = 0;     ///< GraphOptions::seed
  std::vector<NodeDef> nodes;
  /// Named lists of nodes.
  std::vector<std::pair<std::string, std::vector<std::string>>> collections;

  friend bool operator==(const GraphDef&, const GraphDef&) = default;
};

/// The version that a def is written in: its own, or the first later version that can express all its nodes.
std::uint32_t written_version(const GraphDef& def);

/// The graph as data. Nodes stand in the order of their ids, so inputs come first; attributes equal to their op's
/// defaults are left out. Tensors share their elements with the graph's.
///
/// Thread safety: the graph may grow meanwhile; new nodes may be missing then.
GraphDef to_graph_def(const Graph& graph);
/// The nodes from number `first` on, without collections: the growth of the graph (`ImportOptions::goes_on`).
GraphDef to_graph_def(const GraphStore& graph, std::size_t first);

/// The def without the places in the program where nodes were built: `save_graph(files, path, without_places(def))`.
GraphDef without_places(GraphDef def);

/// The part of a step that one device runs, as data. It is sent to the task of the device (`to_step_graph_def`,
/// passes/step_graph_def.hpp).
struct StepGraphDef {
  GraphDef graph;
  std::vector<std::string> targets;  ///< names of nodes that must run

  friend bool operator==(const StepGraphDef&, const StepGraphDef&) = default;
};

}  // namespace dflow
