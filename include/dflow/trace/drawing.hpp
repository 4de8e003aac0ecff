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
      part,      ///< the graph that one device runs
    };
    std::string label;
    Kind kind = Kind::scope;
    std::int32_t parent = -1;  ///< an earlier box, or none
  };
  struct Node {
    enum class Kind : std::uint8_t {
      operation,
      source,  ///< constants, placeholders, arguments: nodes that compute nothing
      state,   ///< variables, and other nodes that keep something between steps
      scope,   ///< stands for all nodes of a name scope
    };
    std::string label;    ///< the last part of its name
    std::string op;       ///< second line
    std::string calls;    ///< third line, if any: the functions that it runs
    std::string tooltip;  ///< all that is known of the node, in lines
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
    std::int32_t count = 1;   ///< number of inputs of `to` that are this edge
  };

  std::string title;
  std::vector<std::string> devices;
  std::vector<Box> boxes;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::string note;  ///< the parts that were left out; empty: nothing
};

struct DrawingOptions {
  std::string title = {};
  /// The most nodes that are drawn. If there are more, scopes from some depth on are drawn as one node each. If that
  /// is not enough, only the nodes that were built first are drawn.
  std::size_t max_nodes = 400;
  std::size_t max_edges = 4000;
  /// Scopes nested deeper than this are drawn as one node each; 0: no scope is opened.
  std::size_t max_depth = 16;
  /// The most bytes of a label; longer labels are cut. Tooltips have eight times as much.
  std::size_t max_label_bytes = 64;
  /// The device of a node of a graph; null: the device that its constraint names.
  std::function<std::string(const Operation&)> device_of = nullptr;
};

/// A graph as it was built: scopes as boxes, the bodies of functions as boxes of their own, devices as colours. The
/// same graph makes the same drawing.
///
/// Thread safety: the graph may grow meanwhile; nodes that are added then may be missing.
/// Errors: InvalidArgument if `max_nodes` or `max_edges` is 0; the errors of `device_of`.
Drawing drawing_of(const Graph& graph, const DrawingOptions& options = {});

/// The graph with the devices that the session places its nodes on (`Session::device_of`). Nodes that it cannot place
/// are on "no device". Errors also: FailedPrecondition if a master in another process places the nodes.
Drawing drawing_of(const Graph& graph, const Session& session, const DrawingOptions& options = {});

/// The graph of a step between two passes, with the bodies that it runs. `placed_on` refers to `devices`.
Drawing drawing_of(const StepGraph& graph, std::span<const DeviceInfo> devices, const DrawingOptions& options = {});

/// The graphs that the devices run in a step (`PreparedStep::device_graphs`): a box for each, and edges from Sends to
/// their Recvs.
Drawing drawing_of(std::span<const DeviceGraph> parts, const DrawingOptions& options = {});

}  // namespace dflow
