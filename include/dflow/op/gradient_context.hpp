#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/op/expr.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dflow {

/// The gradient of a gather: rows `indices` of a tensor of shape `dense_shape` have gradient `values`, all others zero.
/// Rows may repeat; their values add up.
///
/// values: [n, ...], indices: int32 or int64 [n], dense_shape: int32 [rank].
struct IndexedSlices {
  AnyOutput values;
  AnyOutput indices;
  AnyOutput dense_shape;
};

/// The argument of an op's gradient function: the node, the gradients with respect to its outputs, and the place for
/// the gradients with respect to its inputs. An input left unset has no gradient (it is an integer, or the output
/// does not depend on it).
///
/// Nodes built here carry the program line that built the differentiated node.
///
/// Thread safety: used by one thread.
/// Errors: InvalidArgument from any function that is asked for an input or output that the node does not have.
class GradientContext {
 public:
  /// `output_gradients[i]` is invalid if nothing downstream depends on output `i`.
  GradientContext(GraphStore& graph, NodeId node, std::span<const AnyOutput> output_gradients);

  GraphStore& graph() const noexcept { return graph_; }
  const Node& node() const;
  template <class O>
  const typename O::Attrs& attrs() const {
    return node().template attrs_as<O>();
  }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(output_gradients_.size()); }
  Expr input(int i) const;
  Expr output(int i) const;
  bool has_dy(int i = 0) const;
  /// The gradient with respect to output `i`; zeros where nothing depends on it.
  Expr dy(int i = 0) const;

  /// Errors: InvalidArgument for an input that the node does not have, and for a gradient of another element type or
  /// shape than the input's. An empty edge stands for no gradient.
  void set_dx(int i, const AnyOutput& gradient);
  void set_dx(int i, const IndexedSlices& gradient);

  const AnyOutput& dense_dx(int i) const { return dx(i).dense; }
  const std::optional<IndexedSlices>& sparse_dx(int i) const { return dx(i).sparse; }

  /// Throws Unimplemented: the op cannot be differentiated for this node.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  struct InputGradient {
    AnyOutput dense;
    std::optional<IndexedSlices> sparse;
  };

  const InputGradient& dx(int i) const;
  std::size_t check_input(int i) const;
  std::size_t check_output(int i) const;
  [[noreturn]] void reject(std::string message) const;

  GraphStore& graph_;
  NodeId node_;
  std::span<const AnyOutput> output_gradients_;
  std::vector<InputGradient> inputs_;
};

/// The view of the node for the typed gradient function of a user-defined op: `node.input(0)`, `node.output()`,
/// `node.attrs()`.
///
/// Thread safety: used in the thread that builds the gradient.
template <class O, Element T>
class NodeView {
 public:
  explicit NodeView(const GradientContext& context) : context_(context) {}

  const typename O::Attrs& attrs() const { return context_.attrs<O>(); }
  Output<T> input(int i = 0) const { return Output<T>(context_.input(i)); }
  Output<T> output(int i = 0) const { return Output<T>(context_.output(i)); }

 private:
  const GradientContext& context_;
};

}  // namespace dflow
