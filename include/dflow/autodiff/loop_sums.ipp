#pragma once

#include <dflow/autodiff/loop_sums.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/functional.hpp>
#include <dflow/ops/control/tensor_array.hpp>
#include <dflow/ops/control/tensor_list.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/reduction/add_n.hpp>

namespace dflow::detail {

AnyOutput LoopSums::add(std::size_t i, const AnyOutput& variable, const AnyOutput& term) {
  const Node& node = term.node();
  const bool is_sum = node.op == &op_def<AddN> && node.function == graph_.scope().function;
  const std::vector<Endpoint> terms = is_sum ? node.inputs : std::vector<Endpoint>{term.endpoint()};
  Sum& sum = sums_[i];
  std::vector<AnyOutput> rest{variable};
  for (const Endpoint each : terms) {
    if (is_product_of_rows(each)) {
      sum.products.push_back(each.node);
    } else {
      rest.emplace_back(&graph_, each);
    }
  }
  sum.has_rest = rest.size() > 1;
  if (sum.products.empty()) return sum_of_gradients({variable, term});
  return sum.has_rest ? sum_of_gradients(rest) : variable;
}

AnyOutput LoopSums::total(std::size_t i, const BuiltNode& loop, const AnyOutput& variable) {
  const Sum& sum = sums_.at(i);
  std::vector<AnyOutput> terms;
  terms.reserve(sum.products.size() + 1);
  for (const NodeId product : sum.products) terms.push_back(product_of_all(product, loop));
  if (sum.has_rest) terms.push_back(variable);
  return terms.size() == 1 ? terms[0] : sum_of_gradients(terms);
}

bool LoopSums::is_product_of_rows(Endpoint term) const {
  const Node& node = graph_.node(term.node);
  const NodeId body = graph_.scope().function;
  if (node.op != &op_def<MatMul> || node.function != body) return false;
  const MatMul::Attrs& attrs = node.attrs_as<MatMul>();
  if (!attrs.transpose_a || attrs.transpose_b) return false;
  for (const Endpoint factor : node.inputs) {
    const Node& source = graph_.node(factor.node);
    const bool is_made_in_body = source.function == body && source.op->role != OpRole::constant;
    if (!is_made_in_body || !AnyOutput(&graph_, factor).shape().is_fully_defined()) return false;
  }
  const PartialShape a = AnyOutput(&graph_, node.inputs[0]).shape(), b = AnyOutput(&graph_, node.inputs[1]).shape();
  const auto n = static_cast<double>(a[0]), k = static_cast<double>(a[1]), m = static_cast<double>(b[1]);
  return n * (k + m) <= k * m;
}

AnyOutput LoopSums::product_of_all(NodeId product, const BuiltNode& loop) {
  const Node& node = graph_.node(product);
  const AnyOutput a = all_rows(node.inputs[0], loop), b = all_rows(node.inputs[1], loop);
  GraphStore::Scope scope = graph_.scope();
  scope.where = node.where;
  scope.device = node.device;
  scope.device_rule = nullptr;
  scope.colocated_with = node.colocated_with;
  const ScopeGuard there = graph_.enter(std::move(scope));
  return build<MatMul>({a, b}, node.attrs_as<MatMul>());
}

AnyOutput LoopSums::all_rows(Endpoint factor, const BuiltNode& loop) {
  const auto key = std::pair(factor.node, factor.index);
  if (const auto found = all_rows_.find(key); found != all_rows_.end()) return found->second;
  const AnyOutput edge(&graph_, factor);
  GraphStore::Scope scope = graph_.scope();
  // A node that reads a list is placed where the list is.
  scope.device.clear();
  scope.device_rule = nullptr;
  scope.colocated_with = {};
  const ScopeGuard there = graph_.enter(std::move(scope));
  const KeptValueAttrs kept{edge.node().name, factor.index};
  const AnyOutput list = build<KeptList>({loop.output(0)}, kept);
  const AnyOutput nothing_is_missing = any_constant(graph_, Tensor<std::int64_t>(Shape{0}), {});
  const AnyOutput rows = build<TensorListConcatV2>({list, shape_to_ask_for(graph_, edge.shape()), nothing_is_missing},
                                                   {}, {}, one_type(edge.dtype()));
  return all_rows_.emplace(key, rows).first->second;
}

}  // namespace dflow::detail
