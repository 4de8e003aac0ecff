#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/graph/graph_reference.hpp>
#include <dflow/graph/node.hpp>

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <source_location>
#include <string>
#include <string_view>

namespace dflow {

class GraphStore;
class SliceIndex;

/// A name for the node (made unique inside the current name scope when empty) and the place in the user's program. It
/// is the last parameter of every builder: `matmul(x, w, {}, {.name = "logits"})`. If a scope of the graph has a place
/// (`GraphStore::Scope::where`: in gradients, layers, optimizers), the scope's place wins over `where`.
struct At {
  std::string_view name = {};
  std::source_location where = std::source_location::current();
};

/// A handle to one node, for targets and control dependencies.
///
/// Thread safety: a value type. Valid while its graph lives: the Graph that made it (which may be moved), or a session
/// of the graph, since a session keeps its graph alive.
/// Errors: InvalidArgument from an empty handle that is asked for its node, and from any handle whose graph is gone.
class Operation {
 public:
  Operation() = default;
  /// Precondition: `graph` lives, or is null.
  Operation(GraphStore* graph, NodeId node) noexcept : graph_(graph), node_(node) {}
  Operation(const GraphReference& graph, NodeId node) noexcept : graph_(graph), node_(node) {}

  /// Null for an empty handle. Errors: InvalidArgument if the graph is gone.
  GraphStore* graph() const { return graph_.get(); }
  NodeId node_id() const noexcept { return node_; }
  bool is_valid() const noexcept { return !graph_.is_empty(); }
  /// Whether its graph is gone.
  bool is_dangling() const noexcept { return graph_.is_dangling(); }
  /// Whether it is a handle of that graph, and not of another graph that was at the same address before.
  bool is_of(const GraphStore* graph) const noexcept { return graph_.is_of(graph); }
  bool is_of(const GraphReference& graph) const noexcept { return graph_ == graph; }
  /// Whether both are handles of one graph.
  bool shares_graph(const Operation& other) const noexcept { return graph_ == other.graph_; }
  const Node& node() const;
  const std::string& name() const;

  friend bool operator==(const Operation&, const Operation&) = default;

 private:
  GraphReference graph_;
  NodeId node_;
};

template <Element T>
class Output;

/// An edge of the graph with an element type that is known at run time only.
///
/// Thread safety: a value type. Valid while its graph lives, as an `Operation`.
/// Errors: InvalidArgument from an empty handle that is asked for anything of its node, and from any handle whose graph
/// is gone.
class AnyOutput {
 public:
  AnyOutput() = default;
  /// Precondition: `graph` lives, or is null.
  AnyOutput(GraphStore* graph, Endpoint endpoint) noexcept : graph_(graph), endpoint_(endpoint) {}
  AnyOutput(const GraphReference& graph, Endpoint endpoint) noexcept : graph_(graph), endpoint_(endpoint) {}

  /// Null for an empty handle. Errors: InvalidArgument if the graph is gone.
  GraphStore* graph() const { return graph_.get(); }
  Endpoint endpoint() const noexcept { return endpoint_; }
  NodeId node_id() const noexcept { return endpoint_.node; }
  bool is_valid() const noexcept { return !graph_.is_empty(); }
  /// Whether its graph is gone.
  bool is_dangling() const noexcept { return graph_.is_dangling(); }
  /// Whether it is a handle of that graph, and not of another graph that was at the same address before.
  bool is_of(const GraphStore* graph) const noexcept { return graph_.is_of(graph); }
  /// Whether both are handles of one graph.
  bool shares_graph(const AnyOutput& other) const noexcept { return graph_ == other.graph_; }

  const Node& node() const;
  Operation operation() const noexcept { return {graph_, endpoint_.node}; }
  DType dtype() const;
  /// The shape inferred when the node was built; dimensions may be unknown.
  const PartialShape& shape() const;
  /// "name" for output 0, "name:1" for the others.
  std::string name() const;

  /// The same edge with its element type. Errors: InvalidArgument if it has another type.
  template <Element T>
  Output<T> as() const;

  friend bool operator==(const AnyOutput&, const AnyOutput&) = default;

 private:
  GraphReference graph_;
  Endpoint endpoint_;
};

namespace detail {
/// Throws InvalidArgument unless the edge has element type `dtype`.
void require_dtype(const AnyOutput& output, DType dtype);
}  // namespace detail

/// An edge of the graph that carries tensors of element type `T`.
///
/// `ops/operators.hpp` gives it arithmetic. Equality of two edges as a node of the graph is `equal(a, b)`: `==`
/// compares the handles.
template <Element T>
class Output : public AnyOutput {
 public:
  using element_type = T;

  Output() = default;
  /// Throws InvalidArgument if the edge has another element type.
  explicit Output(const AnyOutput& output) : AnyOutput(output) { detail::require_dtype(output, dtype_of<T>); }

  /// The part that the indices name, as `strided_slice` makes it: `x(df::slice(1, -1), df::ellipsis, 0)`. It needs
  /// `ops/array/strided_slice.hpp`.
  template <class... More>
    requires(std::convertible_to<const More&, SliceIndex> && ...)
  Output operator()(const SliceIndex& first, const More&... more) const {
    return slice_at(*this, first, more...);
  }

  /// For builders that have checked the element type at compile time.
  static Output unchecked(const AnyOutput& output) noexcept {
    Output typed;
    static_cast<AnyOutput&>(typed) = output;
    return typed;
  }
};

std::ostream& operator<<(std::ostream&, const AnyOutput&) = delete;  // an edge has a value in a step only: run it
std::ostream& operator<<(std::ostream&, const Operation&) = delete;  // print its name()

template <Element T>
Output<T> AnyOutput::as() const {
  return Output<T>(*this);
}

}  // namespace dflow
