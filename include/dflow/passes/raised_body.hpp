#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/passes/contract.hpp>
#include <dflow/passes/prune.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow::detail {

using GroupNumbers = IndexedVector<StepNodeId, std::ptrdiff_t>;

/// The body of a function that is made of nodes of a graph. `is_whole` is false once an edge or node that the nodes
/// read or wait for is not in it.
class RaisedBody {
 public:
  explicit RaisedBody(const StepGraph& from) : from_(from) { body_.graph = from.graph; }

  /// The next argument, which stands for the edges, and is where the first of them is.
  void add_argument(const OutputInfo& info, std::span<const StepEndpoint> edges, const Node& like) {
    Node argument;
    argument.op = &op_def<FunctionArgument>;
    const auto number = static_cast<std::int64_t>(body_.feeds.size());
    argument.name = str_cat(like.name, "/argument_", number);
    argument.types.push_back(info.dtype);
    argument.attrs = reflect::share(FunctionArgument::Attrs{number, info.shape});
    argument.outputs = {info};
    argument.where = like.where;
    const std::int32_t placed_on = edges.empty() ? 0 : from_.node(edges.front().node).placed_on;
    const StepEndpoint here{body_.append(std::move(argument), placed_on), 0};
    body_.node(here.node).is_fed_only = true;
    body_.feeds.push_back(here);
    for (const StepEndpoint edge : edges) stands_for_.emplace(edge, here);
  }
  /// Makes one edge stand for another.
  void add_alias(StepEndpoint alias, StepEndpoint of) { stands_for_.emplace(alias, edge(of)); }

  /// Appends a node with its inputs and controls; controls that `drops` returns true for are left out.
  template <class F>
  void append(StepNodeId id, F&& drops) {
    const StepNode& node = from_.node(id);
    std::vector<StepEndpoint> inputs;
    std::vector<StepNodeId> controls;
    for (const StepEndpoint input : from_.inputs_of(node)) inputs.push_back(edge(input));
    for (const StepNodeId control : from_.controls_of(node)) {
      if (!control.is_valid() || drops(control)) continue;
      const auto found = now_.find(control);
      is_whole_ = is_whole_ && found != now_.end();
      if (is_whole_) controls.push_back(found->second);
    }
    if (!is_whole_) return;
    StepNode here = node;
    if (node.call >= 0) {
      here.call = static_cast<std::int32_t>(body_.calls.size());
      body_.calls.push_back(from_.calls[static_cast<std::size_t>(node.call)]);
    }
    now_[id] = body_.append(here, inputs, controls);
    // It runs in each call, as it did.
    if (node.op->is_stateful) body_.targets.push_back(now_[id]);
  }
  /// A copy of a node of another body, under a name of its own (later copies are numbered from 2). It waits for
  /// nothing but its inputs.
  void append_copy(StepNodeId id) {
    const StepNode& node = from_.node(id);
    std::vector<StepEndpoint> inputs;
    for (const StepEndpoint input : from_.inputs_of(node)) inputs.push_back(edge(input));
    if (!is_whole_) return;
    Node copy = *node;
    copy.name = step_node_copy(node->name, 1);
    now_[id] = body_.append(std::move(copy), node.placed_on, inputs);
  }

  void append_control_target(StepNodeId id) {
    if (const auto found = now_.find(id); found != now_.end()) body_.targets.push_back(found->second);
  }
  void fetch(StepEndpoint old) { body_.fetches.push_back(edge(old)); }
  /// Fetches an edge with a promised shape.
  void fetch(StepEndpoint old, const OutputInfo& promised, std::int32_t device, const Node& like) {
    StepEndpoint here = edge(old);
    if (!is_whole_) return;
    if (!is_handle(promised.dtype) && promised.shape.has_rank() && body_.output(here).shape != promised.shape) {
      Node ensure;
      ensure.op = &op_def<EnsureShape>;
      ensure.name = str_cat(like.name, "/result_", body_.fetches.size());
      ensure.types = one_type(promised.dtype);
      ensure.attrs = reflect::share(EnsureShape::Attrs{promised.shape});
      ensure.outputs = {promised};
      ensure.where = like.where;
      here = {body_.append(std::move(ensure), device, {&here, 1}), 0};
    }
    body_.fetches.push_back(here);
  }
  void fetch_number(std::int32_t value, std::int32_t device, const Node& like) {
    Node number;
    number.op = &op_def<Const>;
    number.name = str_cat(like.name, "/index_", value);
    number.types = one_type(DType::int32);
    number.attrs = reflect::share(Const::Attrs{Tensor<std::int32_t>(value)});
    number.outputs = {{DType::int32, Shape{}}};
    number.where = like.where;
    body_.fetches.push_back({body_.append(std::move(number), device), 0});
  }

  bool is_whole() const noexcept { return is_whole_; }
  StepGraph take() {
    StepGraph body = prune(std::move(body_));
    body.made.insert(body.made.end(), from_.made.begin(), from_.made.end());
    return body;
  }

 private:
  StepEndpoint edge(StepEndpoint old) {
    if (const auto found = stands_for_.find(old); found != stands_for_.end()) return found->second;
    if (const auto found = now_.find(old.node); found != now_.end()) return {found->second, old.index};
    if (is_free_constant(from_.node(old.node))) {
      return {now_[old.node] = body_.append(from_.node(old.node), {}, {}), old.index};
    }
    is_whole_ = false;
    return old;
  }

  const StepGraph& from_;
  StepGraph body_;
  std::unordered_map<StepEndpoint, StepEndpoint, EndpointHash> stands_for_;
  std::unordered_map<StepNodeId, StepNodeId> now_;
  bool is_whole_ = true;
};

/// The call that stands for a branch or a loop.
struct RaisedCall {
  Node node;
  std::int32_t placed_on = 0;
  std::shared_ptr<StepCall> call = std::make_shared<StepCall>();
  std::vector<StepEndpoint> inputs;                                        ///< where it was
  std::unordered_map<StepEndpoint, std::int32_t, EndpointHash> output_of;  ///< edges by its results
};

/// Puts each call in the place of its group.
inline bool put_calls(StepGraph& graph, const GroupNumbers& group_of, const std::vector<StepGroup>& groups,
                      std::vector<RaisedCall>& calls) {
  const StepGraph& old = graph;
  return contract(graph, group_of, groups,
                  [&](StepGraph& fresh, std::size_t number, std::span<const StepEndpoint> inputs,
                      std::span<const StepNodeId> controls) {
                    const StepGroup& group = groups[number];
                    RaisedCall& by = calls[number];
                    std::unordered_map<StepEndpoint, StepEndpoint, EndpointHash> given;
                    for (std::size_t i = 0; i < inputs.size(); ++i) given.emplace(group.inputs[i], inputs[i]);
                    std::vector<StepEndpoint> its_inputs;
                    for (const StepEndpoint input : by.inputs) {
                      const auto [found, is_constant] = given.try_emplace(input);
                      if (is_constant) found->second = {fresh.append(old.node(input.node), {}, {}), input.index};
                      its_inputs.push_back(found->second);
                    }
                    const StepNodeId made = fresh.append(std::move(by.node), by.placed_on, its_inputs, controls);
                    fresh.node(made).call = static_cast<std::int32_t>(fresh.calls.size());
                    fresh.calls.push_back(std::move(by.call));
                    StepReplacement replacement;
                    for (const StepEndpoint output : group.outputs) {
                      replacement.outputs.push_back({made, by.output_of.at(output)});
                    }
                    replacement.waited_for.assign(group.waited_for.size(), made);
                    return replacement;
                  });
}

}  // namespace dflow::detail
