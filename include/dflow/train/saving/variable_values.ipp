#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/train/saving/variable_values.hpp>

#include <span>
#include <string>
#include <utility>

namespace dflow::train {

VariableValues::VariableValues(GraphStore& graph) {
  const ScopeGuard outside = graph.enter(GraphStore::Scope{});
  const ScopeGuard names = enter_name_scope(graph, "values");
  std::vector<Operation> assigns;
  for (const AnyVariable& variable : dflow::detail::variables_in(graph, "variables")) {
    reads_.push_back(variable.read_edge());
    const std::string name = str_cat("value_", fed_.size());
    fed_.push_back(dflow::detail::any_placeholder(graph, variable.dtype(), variable.shape(), {.name = name}));
    assigns.push_back(variable.assign(fed_.back()));
  }
  if (assigns.empty()) throw_error(Status::invalid_argument("VariableValues: the graph has no variables"));
  assign_ = dflow::detail::no_op_after(graph, assigns, {.name = "assign"});
}

void VariableValues::read(Session& session) {
  std::vector<AnyTensor> values(reads_.size());
  session.run_erased({}, nullptr, {}, reads_, {}, values);
  values_ = std::move(values);
}

void VariableValues::assign(Session& session) const {
  if (!has_values())
    throw_error(Status::failed_precondition("VariableValues: nothing has been read that could be assigned"));
  std::vector<Feed> feeds;
  feeds.reserve(values_.size());
  for (std::size_t i = 0; i < values_.size(); ++i) feeds.emplace_back(fed_[i], values_[i]);
  session.run_erased({}, nullptr, feeds, {}, std::span(&assign_, 1), {});
}

}  // namespace dflow::train
