#pragma once

#include <dflow/graph/graph.hpp>

#include <deque>
#include <map>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace dflow {

/// The nodes of a graph, its name index and its scope stack: what `Graph` owns and what Outputs point into.
///
/// Thread safety: `mutex` guards everything; `append_node` takes it exclusively, sessions share it while they copy the
/// part of the graph that a step needs.
class GraphStore {
 public:
  struct Scope {
    std::string name_prefix;  ///< "" or "layer1/"
    std::string device;
    std::vector<NodeId> control_inputs;
    NodeId colocated_with = -1;
  };

  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
  };
  template <class V>
  using NameMap = std::unordered_map<std::string, V, NameHash, std::equal_to<>>;

  std::deque<Node> nodes;
  NameMap<NodeId> node_of_name;
  NameMap<int> next_suffix;  ///< of names that were asked for more than once
  std::vector<Scope> scopes{Scope{}};
  std::map<std::string, std::vector<NodeId>, std::less<>> collections;
  GraphOptions options;
  std::uint64_t random_ops = 0;
  mutable std::shared_mutex mutex;

  GraphStore() = default;
  explicit GraphStore(GraphOptions graph_options) : options(graph_options) {}
  GraphStore(const GraphStore& other);

  const Node& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }

  /// `requested` inside the current name scope, made unique by a suffix "_1", "_2", ...
  std::string unique_name(std::string_view requested);
};

/// Makes `scope` the current one while the guard lives: for what builds nodes without a Graph at hand.
[[nodiscard]] ScopeGuard enter_scope(GraphStore& graph, GraphStore::Scope scope);
/// The same as the functions of Graph.
[[nodiscard]] ScopeGuard enter_name_scope(GraphStore& graph, std::string_view name);
[[nodiscard]] ScopeGuard enter_colocation(GraphStore& graph, NodeId node);
[[nodiscard]] ScopeGuard enter_control_dependencies(GraphStore& graph, std::span<const Operation> operations);

/// Throws InvalidArgument unless `name` is a legal node name: letters, digits and "_./->", starting with a letter, digit, "."
/// or "_" (TensorFlow's rule), at most 4096 bytes.
void check_node_name(std::string_view name, std::string_view op, std::source_location where);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/graph/graph.ipp>
#endif
