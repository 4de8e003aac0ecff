#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/gradient_context.hpp>

namespace dflow {

DFLOW_INLINE GradientContext::GradientContext(GraphStore& graph, NodeId node, std::span<const AnyOutput> output_gradients)
    : graph_(graph),
      node_(node),
      output_gradients_(output_gradients),
      dense_(graph.node(node).inputs.size()),
      sparse_(graph.node(node).inputs.size()) {}

DFLOW_INLINE const Node& GradientContext::node() const { return graph_.node(node_); }

DFLOW_INLINE Expr GradientContext::input(int i) const {
  return AnyOutput(&graph_, node().inputs[static_cast<std::size_t>(i)]);
}

DFLOW_INLINE Expr GradientContext::output(int i) const { return AnyOutput(&graph_, Endpoint{node_, i}); }

DFLOW_INLINE Expr GradientContext::dy(int i) const {
  return has_dy(i) ? Expr(output_gradients_[static_cast<std::size_t>(i)]) : zeros_like(output(i));
}

DFLOW_INLINE void GradientContext::fail(const std::string& message) const {
  throw Error(unimplemented(message).with_node(node().op->name, node().name).with_location(node().where));
}

}  // namespace dflow
