#pragma once

#include <dflow/autodiff/body_edges.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/check.hpp>

#include <algorithm>

namespace dflow::detail {

AnyOutput with_shape(const AnyOutput& x, const PartialShape& shape) {
  if (is_handle(x.dtype()) || shape == x.shape() || !shape.has_rank()) return x;
  return build<EnsureShape>({x}, {.shape = shape});
}

// ---- BodyGradientEdges ----

void BodyGradientEdges::add(NodeId function, GraphStore::Function parts) {
  functions_.push_back(function);
  parts_.push_back(std::move(parts));
}

ScopeGuard BodyGradientEdges::enter(const AnyOutput& iteration) {
  GraphStore::Scope scope = graph_.scope();
  outer_ = scope.foreign;
  scope.foreign = std::shared_ptr<BodyGradientEdges>(std::shared_ptr<void>(), this);  // lives as long as the guard
  iteration_ = iteration;
  body_ = scope;
  brought_.clear();
  return graph_.enter(std::move(scope));
}

AnyOutput BodyGradientEdges::bring(const AnyOutput& edge) {
  const NodeId of = edge.node().function;
  if (std::find(functions_.begin(), functions_.end(), of) == functions_.end()) return bring_other(edge);
  const auto key = std::pair(edge.node_id(), edge.endpoint().index);
  if (const auto found = brought_.find(key); found != brought_.end()) return found->second;
  const AnyOutput made = make(edge);
  brought_.emplace(key, made);
  return made;
}

AnyOutput BodyGradientEdges::make(const AnyOutput& edge) {
  const Node& source = edge.node();
  // Builds in the body itself, also for a scope inside of it: the whole body sees the edge.
  GraphStore::Scope scope = body_;
  scope.where = graph_.scope().where;
  scope.foreign = nullptr;
  // A node that reads a list is placed where the list is.
  scope.device.clear();
  scope.device_rule = nullptr;
  scope.colocated_with = {};
  const ScopeGuard inside = graph_.enter(std::move(scope));
  if (source.op->role != OpRole::constant) return build_kept(edge);
  return AnyOutput(&graph_, {append_node(graph_, {source.op, {}, source.types, source.attrs, {}, source.where}), 0});
}

AnyOutput BodyGradientEdges::element(const AnyOutput& list, const AnyOutput& number, const AnyOutput& edge) {
  const std::vector<AnyOutput> inputs{list, number};
  if (edge.dtype() == DType::resource) return build<KeptHandleElement>(graph_, inputs);
  if (edge.dtype() == DType::variant) return build<KeptListElement>(graph_, inputs);
  return build<KeptElement>(graph_, inputs, {.shape = edge.shape()}, {}, one_type(edge.dtype()));
}

// ---- KeptEdges ----

KeptEdges::KeptEdges(GraphStore& graph, NodeId call) : BodyGradientEdges(graph), call_(call) {
  for (const std::string& name : called_functions(node())) add(name);
  captured_ = captured_edges(graph_, node(), true);
  if (!captured_.empty() && captured_.size() + parts(0).arguments.size() != node().inputs.size()) {
    throw_error(Status::invalid_argument(str_cat("it says of ", captured_.size(), " captures what they stand for")));
  }
}

void KeptEdges::add(const std::string& name) {
  const NodeId begin = graph_.find_appended(name);
  const GraphStore::Function parts = require_function(graph_, begin, name);
  const bool asks = node().op->role == OpRole::loop && num_functions() == 0;
  const std::size_t num_given = node().inputs.size() - (node().op->role == OpRole::branch ? 1 : 0);
  const std::size_t num_results = graph_.node(parts.results).inputs.size();
  if (parts.arguments.size() > num_given || num_results != (asks ? 1 : node().outputs.size())) {
    throw_error(
        Status::invalid_argument(str_cat("function '", name, "' takes ", parts.arguments.size(), " arguments of ",
                                         num_given, ", and gives ", num_results, " results")));
  }
  BodyGradientEdges::add(begin, parts);
}

AnyOutput KeptEdges::bring_other(const AnyOutput& edge) {
  const auto found = std::find(captured_.begin(), captured_.end(), edge.endpoint());
  if (found != captured_.end()) {
    const std::size_t input = parts(0).arguments.size() + static_cast<std::size_t>(found - captured_.begin());
    return out_of_call(AnyOutput(&graph_, node().inputs[input]));
  }
  return outer_ == nullptr ? edge : outer_->bring(edge);
}

template <class O>
AnyOutput KeptEdges::build_beside(KeptValueAttrs attrs, const TypeArgs& types) {
  GraphStore::Scope scope = graph_.scope();
  scope.function = node().function;
  scope.control_inputs.clear();
  scope.foreign = nullptr;
  scope.device = node().device;
  scope.device_rule = nullptr;
  scope.colocated_with = node().colocated_with;
  const ScopeGuard beside = graph_.enter(std::move(scope));
  return build<O>(graph_, std::vector<AnyOutput>{AnyOutput(&graph_, {call_, 0})}, std::move(attrs), {}, types);
}

/// An edge that was built beside the call may be in another body that the current scope does not see.
AnyOutput KeptEdges::out_of_call(const AnyOutput& edge) {
  if (graph_.is_inside(graph_.scope().function, edge.node().function) || outer_ == nullptr) return edge;
  return outer_->bring(edge);
}

AnyOutput KeptEdges::count() { return out_of_call(build_beside<KeptCount>({}, {})); }

AnyOutput KeptEdges::tape(const std::string& name) {
  return out_of_call(build_beside<KeptValue>({name, 0}, one_type(DType::variant)));
}

AnyOutput KeptEdges::build_kept(const AnyOutput& edge) {
  const Node& source = edge.node();
  if (source.op->role == OpRole::argument && node().op->role == OpRole::call) {
    return out_of_call(AnyOutput(&graph_, node().inputs.at(argument_number(source))));
  }
  const KeptValueAttrs attrs{source.name, edge.endpoint().index};
  if (node().op->role == OpRole::loop) {
    return element(out_of_call(build_beside<KeptList>(attrs, {})), iteration_, edge);
  }
  return with_shape(out_of_call(build_beside<KeptValue>(attrs, one_type(edge.dtype()))), edge.shape());
}

// ---- TapeEdges ----

TapeEdges::TapeEdges(GraphStore& graph, const KeptEdges& of, AnyOutput tape)
    : BodyGradientEdges(graph), tape_(std::move(tape)) {
  add(of.function(0), of.parts(0));
}

AnyOutput TapeEdges::build_kept(const AnyOutput& edge) {
  const AnyOutput number = any_constant(graph_, Tensor<std::int64_t>(static_cast<std::int64_t>(kept_.size())), {});
  kept_.push_back(edge.endpoint());
  return element(tape_, number, edge);
}

std::string TapeEdges::new_name(GraphStore& graph, NodeId function) {
  GraphStore::Scope scope = graph.scope();
  scope.name_prefix = graph.node(function).name + "/";
  const ScopeGuard there = graph.enter(std::move(scope));
  return graph.unique_scope_name("tape") + "/values";  // no other node has a name in that scope
}

void TapeEdges::build_tape(const std::string& name) {
  GraphStore::Scope scope;
  scope.function = function(0);
  scope.extensions = graph_.scope().extensions;
  scope.where = graph_.scope().where;
  const ScopeGuard there = graph_.enter(std::move(scope));
  std::vector<AnyOutput> values;
  values.reserve(kept_.size());
  for (const Endpoint edge : kept_) values.emplace_back(&graph_, edge);
  static_cast<void>(build<CallTape>(graph_, values, {}, {.name = name}));
}

}  // namespace dflow::detail
