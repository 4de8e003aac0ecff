#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/ops/control/function_body.hpp>
#include <dflow/ops/control/function_builders.hpp>

#include <algorithm>
#include <utility>

namespace dflow::detail {

FunctionBody::FunctionBody(GraphStore& graph, std::string_view name, std::source_location where,
                           std::optional<std::source_location> place, FunctionBegin::Attrs attrs)
    : graph_(graph), where_(where) {
  GraphStore::Scope scope = graph.scope();
  scope.control_inputs.clear();
  {
    const ScopeGuard alone = graph.enter(scope);
    const std::string unique = graph.unique_scope_name(name);
    const std::string own = unique.substr(graph.scope().name_prefix.size());
    begin_ = build<FunctionBegin>(graph, {}, attrs, {.name = own, .where = where}).operation().node_id();
    scope.name_prefix = unique + "/";
  }
  scope.function = begin_;
  scope.where = place;
  scope_.emplace(graph.enter(std::move(scope)));
}

AnyOutput FunctionBody::add_argument(DType dtype, const PartialShape& shape) {
  const std::string name = graph_.unique_name("argument").substr(graph_.scope().name_prefix.size());
  return build<FunctionArgument>(graph_, {}, {.number = num_arguments_++, .shape = shape},
                                 {.name = name, .where = where_}, one_type(dtype));
}

void FunctionBody::finish(const BodyResults& results) {
  GraphStore::Scope scope = graph_.scope();
  scope.control_inputs.clear();
  for (const Operation& target : results.targets) {
    require_node(graph_, target, graph_.node(begin_).name, where_);
    scope.control_inputs.push_back(target.node_id());
  }
  const std::string name = graph_.unique_name("results").substr(scope.name_prefix.size());
  const ScopeGuard after = graph_.enter(std::move(scope));
  const BuiltNode end = build<FunctionResults>(graph_, results.edges, {}, {.name = name, .where = where_});
  find_captures(end.operation().node_id());
  scope_.reset();
}

/// The edges around the body between the two nodes that nodes of the body read, each once, except constants.
std::vector<Endpoint> captures_of(const GraphStore& graph, NodeId begin, NodeId last) {
  std::vector<Endpoint> captures;
  for (const NodeId id : IndexRange<NodeId>(begin + 1, last + 1)) {
    const Node& node = graph.node(id);
    if (node.function != begin) continue;
    for (const Endpoint input : node.inputs) {
      const Node& source = graph.node(input.node);
      if (source.function == begin) continue;
      if (source.op->role == OpRole::constant && source.control_inputs.empty()) continue;
      if (std::find(captures.begin(), captures.end(), input) == captures.end()) captures.push_back(input);
    }
  }
  return captures;
}

void FunctionBody::find_captures(NodeId last) { captures_ = captures_of(graph_, begin_, last); }

void CaptureList::add(const FunctionBody& body) {
  for (const Endpoint edge : body.captures()) {
    if (std::find(all_.begin(), all_.end(), edge) == all_.end()) all_.push_back(edge);
  }
}

PartialShape common_shape(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return PartialShape::unknown();
  std::vector<std::int64_t> dims;
  dims.reserve(static_cast<std::size_t>(a.rank()));
  for (int i = 0; i < a.rank(); ++i) dims.push_back(a.dim(i) == b.dim(i) ? a.dim(i) : dynamic);
  return PartialShape(dims);
}

}  // namespace dflow::detail
