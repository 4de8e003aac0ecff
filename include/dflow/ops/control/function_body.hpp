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

/// The body of a function that is being built: as long as one lives, what is built is part of it. Errors leave the
/// graph to a `GraphStore::Draft` around it.
///
/// Thread safety: builds; see Graph.
class FunctionBody {
 public:
  /// The function is called `name`, made unique. What is built in it comes from `place`, or where it says itself: the
  /// caller's code is called back outside of the library's `enter_place`.
  FunctionBody(GraphStore& graph, std::string_view name, std::source_location where,
               std::optional<std::source_location> place, FunctionBegin::Attrs attrs = {});

  AnyOutput add_argument(DType dtype, const PartialShape& shape);
  /// Ends the body. Errors: InvalidArgument for results that are empty or of another graph.
  void finish(const BodyResults& results);

  const std::string& name() const { return graph_.node(begin_).name; }
  NodeId begin() const noexcept { return begin_; }
  /// Of the finished body: what it reads of what is around it, each edge once, but for constants, which are as good as
  /// its own.
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

/// What nodes from `begin` to before `last` read of what is around them.
std::vector<Endpoint> captures_of(const GraphStore& graph, NodeId begin, NodeId last);

/// Edges of several bodies, each once.
class CaptureList {
 public:
  void add(const FunctionBody& body);
  std::span<const Endpoint> all() const noexcept { return all_; }

 private:
  std::vector<Endpoint> all_;
};

/// What is known of an edge that is either this one or that one.
PartialShape common_shape(const PartialShape& a, const PartialShape& b);

}  // namespace dflow::detail
