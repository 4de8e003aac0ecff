#pragma once

/// Public: a graph made from a GraphDef.

#include <dflow/graph/graph_def.hpp>
#include <dflow/op/op_table.hpp>

#include <cstddef>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

struct ImportOptions {
  /// Names of the imported nodes become "prefix/name"; the prefix is made unique. Empty: names stay as they are.
  std::string prefix = {};
  /// Edges of the GraphDef ("x", "x:1", or "^x" for control), each with the graph's edge that takes its place.
  std::vector<std::pair<std::string, AnyOutput>> input_map = {};
  /// The def is part of a step (`to_step_graph_def`). The names of its nodes may be several legal names joined by
  /// " + ", as passes make them, and longer than other names.
  bool is_part_of_step = false;
  /// The def goes on where the graph ends (`to_graph_def(graph, first)`). The inputs and colocation of its nodes may
  /// refer to nodes of the graph. A node with a name that the graph has already is an error.
  bool goes_on = false;
  /// Bounds on the size of a GraphDef.
  std::size_t max_nodes = GraphDef::max_nodes;
  /// Outputs of all nodes together, beyond one per output of an op's signature: an attribute may set the number of an
  /// op's outputs.
  std::size_t max_list_outputs = std::size_t{1} << 20;
};

/// Builds the graph that `def` describes, with ops from `table`. Every check of the builders is made: op, names,
/// inputs, element types, attributes, shapes, devices, colocation. Nodes may stand in any order.
///
/// Errors: InvalidArgument for any fault of the def, including a version newer than `GraphDef::current_version` and a
/// cycle. The error has node, op and, in the message, the line where the node was built. NotFound for a call of a
/// function that does not exist; ResourceExhausted for functions in functions in more than 256 levels.
Graph import_graph(const GraphDef& def, const OpTable& table, const ImportOptions& options = {},
                   std::source_location where = std::source_location::current());

/// Appends the nodes of `def` to a graph, inside its current scopes, and joins them to its edges by
/// `ImportOptions::input_map`. Returns the new operations in the order of `def.nodes`.
///
/// ```cpp
/// df::import_graph_into(graph, trained, df::standard_op_table(), {.prefix = "encoder", .input_map = {{"x", images}}});
/// ```
/// A call in the def may name a function of the graph (`register_function`).
/// Errors: as `import_graph`; also for a key of the input map that no node asks for; NotFound for a call of a function
/// that does not exist. The graph is unchanged then.
std::vector<Operation> import_graph_into(Graph& graph, const GraphDef& def, const OpTable& table,
                                         const ImportOptions& options = {},
                                         std::source_location where = std::source_location::current());

}  // namespace dflow
