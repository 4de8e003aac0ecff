#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/control/functional.hpp>

#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::detail {

struct BodyResults;

/// Builds the body of a function: as long as a FunctionBody lives, new nodes are part of the body. After an error a
/// `GraphStore::Draft` around it takes care of the graph.
///
/// Thread safety: builds; see Graph.
class FunctionBody {
 public:
  /// The function is called `name`, made unique. Nodes built in it have the source location `place`, or, without it,
  /// their own: the caller's code is called back outside of the library's `enter_place`.
  FunctionBody(GraphStore& graph, std::string_view name, std::source_location where,
               std::optional<std::source_location> place, FunctionBegin::Attrs attrs = {});

  AnyOutput add_argument(DType dtype, const PartialShape& shape);
  /// Ends the body. Errors: InvalidArgument for results that are empty or of another graph.
  void finish(const BodyResults& results);

  const std::string& name() const { return graph_.node(begin_).name; }
  NodeId begin() const noexcept { return begin_; }
  /// The edges from around it that the finished body reads, each once. Constants are left out: they are as good as the
  /// body's own.
  const std::vector<Endpoint>& captures() const noexcept { return captures_; }

 private:
  void find_captures(NodeId last);

  GraphStore& graph_;
  std::source_location where_;
  NodeId begin_;
  std::int64_t num_arguments_ = 0;
  std::optional<ScopeGuard> scope_;
  std::vector<Endpoint> captures_;
};

/// The edges from around them that nodes from `begin` to before `last` read.
std::vector<Endpoint> captures_of(const GraphStore& graph, NodeId begin, NodeId last);

/// Edges of several bodies, each once.
class CaptureList {
 public:
  void add(const FunctionBody& body);
  std::span<const Endpoint> all() const noexcept { return all_; }

 private:
  std::vector<Endpoint> all_;
};

/// The shape of an edge that may be either of two edges, as far as it is known.
PartialShape common_shape(const PartialShape& a, const PartialShape& b);

}  // namespace dflow::detail
