#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/gradient_context.hpp>

#include <utility>

namespace dflow {

GradientContext::GradientContext(GraphStore& graph, NodeId node, std::span<const AnyOutput> output_gradients)
    : graph_(graph), node_(node), output_gradients_(output_gradients), inputs_(graph.node(node).inputs.size()) {}

const Node& GradientContext::node() const { return graph_.node(node_); }

void GradientContext::reject(std::string message) const {
  throw_error(
      Status::invalid_argument(std::move(message)).with_node(node().op->name, node().name).with_location(node().where));
}

std::size_t GradientContext::check_input(int i) const {
  if (i >= 0 && i < num_inputs()) return static_cast<std::size_t>(i);
  reject(str_cat("the gradient of ", node().op->name, " names input ", i, " of ", num_inputs()));
}

std::size_t GradientContext::check_output(int i) const {
  if (i >= 0 && i < num_outputs()) return static_cast<std::size_t>(i);
  reject(str_cat("the gradient of ", node().op->name, " names output ", i, " of ", num_outputs()));
}

Expr GradientContext::input(int i) const { return AnyOutput(&graph_, node().inputs[check_input(i)]); }

Expr GradientContext::output(int i) const {
  check_output(i);
  return AnyOutput(&graph_, Endpoint{node_, i});
}

bool GradientContext::has_dy(int i) const { return output_gradients_[check_output(i)].is_valid(); }

Expr GradientContext::dy(int i) const {
  return has_dy(i) ? Expr(output_gradients_[static_cast<std::size_t>(i)]) : zeros_like(output(i));
}

void GradientContext::set_dx(int i, const AnyOutput& gradient) {
  InputGradient& dx = inputs_[check_input(i)];
  if (gradient.is_valid()) {
    if (!gradient.is_of(&graph_)) reject(str_cat("the gradient for input ", i, " belongs to another graph"));
    const AnyOutput x = input(i);
    if (gradient.dtype() != x.dtype() || !gradient.shape().is_compatible_with(x.shape())) {
      reject(str_cat("the gradient for input ", i, " is ", dtype_name(gradient.dtype()), " ",
                     gradient.shape().to_string(), ", the input is ", dtype_name(x.dtype()), " ",
                     x.shape().to_string()));
    }
  }
  dx.dense = gradient;
}

void GradientContext::set_dx(int i, const IndexedSlices& gradient) {
  InputGradient& dx = inputs_[check_input(i)];
  for (const AnyOutput& edge : {gradient.values, gradient.indices, gradient.dense_shape}) {
    if (!edge.is_of(&graph_)) reject(str_cat("the rows for input ", i, " are empty or belong to another graph"));
  }
  if (gradient.values.dtype() != input(i).dtype()) {
    reject(str_cat("the gradient for input ", i, " is ", dtype_name(gradient.values.dtype()), ", the input is ",
                   dtype_name(input(i).dtype())));
  }
  dx.sparse = gradient;
}

const GradientContext::InputGradient& GradientContext::dx(int i) const { return inputs_[check_input(i)]; }

void GradientContext::fail(const std::string& message) const {
  throw_error(Status::unimplemented(message).with_node(node().op->name, node().name).with_location(node().where));
}

}  // namespace dflow
