#pragma once

/// Public: graphs, which builders append nodes to.

#include <dflow/base/config.hpp>
#include <dflow/base/status.hpp>
#include <dflow/graph/node.hpp>
#include <dflow/graph/output.hpp>
#include <dflow/graph/scope.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

class GraphStore;

/// Chooses the device of a node before it is appended: a full or partial name, or "" for no constraint. It is called
/// once for each node, in the thread that builds.
using DeviceFunction = std::function<std::string(const Node& node)>;

struct GraphOptions {
  /// Seed of every random op without a seed of its own; 0 draws a different seed for each op and run.
  std::uint64_t seed = 0;
};

/// A dataflow graph: nodes joined by typed edges, built by the functions of `dflow/ops/`.
///
/// A graph is a value: copying copies its nodes, moving keeps every `Output` and `Operation` valid. It only grows; a
/// session that runs it sees new nodes at the next step. Building instantiates no kernel.
///
/// The nodes live as long as the Graph or any session, prepared step or run of them. Handles do not keep them alive:
/// the use of a handle whose graph is gone is InvalidArgument.
///
/// Thread safety: building (scopes and collections included) from several threads at once needs the caller's lock.
/// While one thread builds, any others may compile and run steps of the graph, copy it, and read nodes, names and
/// collections. Hand Outputs and Operations to other threads with the usual synchronisation.
/// Errors: builders and scopes throw `Error` with InvalidArgument, naming op, shapes and the line of the user's
/// program; the graph is unchanged then. FailedPrecondition for a graph that was moved from.
///
/// ```cpp
/// df::Graph graph;
/// auto x = df::placeholder<float>(graph, {df::dynamic, 3});
/// auto y = df::reduce_sum(x * 2.0f);
/// ```
class Graph {
 public:
  explicit Graph(GraphOptions options = {});
  Graph(const Graph& other);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph& other);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  std::size_t num_nodes() const;
  /// Counts up with every node.
  std::uint64_t version() const;
  /// One of the graph's `num_nodes()` nodes. The reference stays valid while the graph lives. Throws NotFound.
  const Node& node(NodeId id) const;
  /// The node of that full name, or an invalid Operation.
  Operation find(std::string_view name) const;
  /// "name" or "name:index". Errors: NotFound; InvalidArgument if the index is not the number of an output.
  AnyOutput output(std::string_view name) const;

  /// Nodes built while the guard lives are placed on this device; a partial name is merged with the surrounding one.
  [[nodiscard]] ScopeGuard device(std::string_view name, std::source_location where = std::source_location::current());
  /// The same with a function that chooses the device of each node. Device scopes inside the scope have precedence over
  /// it. Errors: the builder throws the errors of the function, and InvalidArgument if the function returns no device's
  /// name.
  [[nodiscard]] ScopeGuard device(DeviceFunction choose);
  /// Nodes built while the guard lives are named "name/...".
  [[nodiscard]] ScopeGuard name_scope(std::string_view name,
                                      std::source_location where = std::source_location::current());
  /// Nodes built while the guard lives run after these operations.
  [[nodiscard]] ScopeGuard control_dependencies(std::span<const Operation> operations,
                                                std::source_location where = std::source_location::current());
  [[nodiscard]] ScopeGuard control_dependencies(std::initializer_list<Operation> operations,
                                                std::source_location where = std::source_location::current());
  /// Nodes built while the guard lives are placed on the device of this node; device scopes around the guard do not
  /// matter. A device scope inside adds its constraint.
  [[nodiscard]] ScopeGuard colocate_with(const AnyOutput& output,
                                         std::source_location where = std::source_location::current());
  [[nodiscard]] ScopeGuard colocate_with(Operation operation,
                                         std::source_location where = std::source_location::current());

  /// Named lists of nodes, "trainable_variables" for example; in the order of insertion.
  void add_to_collection(std::string_view collection, Operation operation,
                         std::source_location where = std::source_location::current());
  std::vector<Operation> collection(std::string_view name) const;

  std::uint64_t seed() const;

  /// The store that Outputs of this graph refer to; it does not move with the Graph object.
  GraphStore* store() const;

 private:
  std::shared_ptr<GraphStore> store_;  ///< the graph's sessions hold it, too
};

/// Everything needed to append one node; filled by `op/build.hpp`.
struct NodeRequest {
  const OpDef* op = nullptr;
  std::span<const AnyOutput> inputs;
  /// One per type parameter; invalid entries are deduced from the inputs.
  TypeArgs types;
  std::shared_ptr<const void> attrs;
  std::string_view name;
  std::source_location where;
  /// The name may be one that passes have made (`check_step_node_name`).
  bool is_part_of_step = false;
};

/// Appends a node to `graph` under its current scopes: checks the signature, infers shapes, makes the name unique. The
/// source location of the node is the scope's, else the request's.
/// Errors: InvalidArgument; any other exception of a shape function becomes an Error with op, node and line as well.
/// Nothing is appended then.
NodeId append_node(GraphStore& graph, const NodeRequest& request);

/// Runs the op's shape function on a node whose inputs are set and stores the output shapes in it.
void infer_shapes(const GraphStore& graph, Node& node);

/// A seed for the next random op: the given one, or derived from the graph's seed and the op's position, or 0 for "draw
/// one at run time".
std::uint64_t next_op_seed(GraphStore& graph, std::uint64_t requested);

}  // namespace dflow
