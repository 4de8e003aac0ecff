#pragma once

#include <dflow/core/device_info.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/session/device_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace dflow {

class Session;

/// A graph as `to_dot` (trace/dot.hpp) draws it. `drawing_of` makes one. A program may change it
/// before it is written, or make its own.
///
/// Thread safety: a value type.
struct Drawing {
  /// A frame around nodes and other frames.
  struct Box {
    enum class Kind : std::uint8_t {
      scope,     ///< nodes of one name scope
      function,  ///< the body of a function
      part,      ///< what one device runs
    };
    std::string label;
    Kind kind = Kind::scope;
    std::int32_t parent = -1;  ///< an earlier one, or none
  };
  struct Node {
    enum class Kind : std::uint8_t {
      operation,
      source,  ///< constants, placeholders, arguments: what is not computed
      state,   ///< variables, and what else keeps something between steps
      scope,   ///< stands for all nodes of a name scope
    };
    std::string label;    ///< the last part of its name
    std::string op;       ///< second line
    std::string calls;    ///< third line, if any: the functions that it runs
    std::string tooltip;  ///< all that is known of it, in lines
    Kind kind = Kind::operation;
    std::int32_t box = -1;     ///< or none
    std::int32_t device = -1;  ///< which of `devices`, or none
  };
  struct Edge {
    enum class Kind : std::uint8_t {
      data,
      control,
      transfer,  ///< from a Send to its Recv, between devices
    };
    std::int32_t from = -1;
    std::int32_t to = -1;
    Kind kind = Kind::data;
    std::int32_t output = 0;  ///< of `from`
    std::string label = {};   ///< element type and shape
    std::int32_t count = 1;   ///< so many inputs of `to` are this edge
  };

  std::string title;
  std::vector<std::string> devices;
  std::vector<Box> boxes;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::string note;  ///< what was left out; empty: nothing
};

struct DrawingOptions {
  std::string title = {};
  /// So many nodes are drawn at most. Scopes are drawn as one node each from such a depth on that they are; where that
  /// is not enough the nodes that were built first are.
  std::size_t max_nodes = 400;
  std::size_t max_edges = 4000;
  /// Scopes in more scopes than that are drawn as one node each; 0: no scope is opened.
  std::size_t max_depth = 16;
  /// What is longer is cut in labels; tooltips have eight times as much.
  std::size_t max_label_bytes = 64;
  /// Where a node of a graph is; null: what its constraint says.
  std::function<std::string(const Operation&)> device_of = nullptr;
};

/// A graph as it was built: scopes as boxes, the bodies of functions as boxes of their own, devices as colours. The
/// same graph makes the same drawing.
///
/// Thread safety: the graph may grow meanwhile; what is new then may be missing.
/// Errors: InvalidArgument for no nodes or edges to be drawn at most; those of `device_of`.
Drawing drawing_of(const Graph& graph, const DrawingOptions& options = {});

/// The graph with the devices that the session places its nodes on (`Session::device_of`); those that it cannot place
/// are on "no device". Errors also: FailedPrecondition where a master in another process places them.
Drawing drawing_of(const Graph& graph, const Session& session, const DrawingOptions& options = {});

/// The graph of a step between two passes, with the bodies that it runs. `devices` are those that `placed_on` is of.
Drawing drawing_of(const StepGraph& graph, std::span<const DeviceInfo> devices, const DrawingOptions& options = {});

/// What the devices run of a step (`PreparedStep::device_graphs`): a box for each, and edges from Sends to their Recvs.
Drawing drawing_of(std::span<const DeviceGraph> parts, const DrawingOptions& options = {});

}  // namespace dflow
