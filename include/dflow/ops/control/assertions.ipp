#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/control/assertions.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/control/function_builders.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

namespace assertions {

[[noreturn]] void fail_check(std::string text, std::string_view message, const At& at) {
  throw_error(Status::invalid_argument(message.empty() ? std::move(text) : str_cat(message, ": ", text))
                  .with_location(at.where));
}
/// The graph of x. Errors: InvalidArgument if x is empty.
GraphStore& checked_graph(std::string_view check, const AnyOutput& x, const At& at) {
  return graph_of({&x, 1}, check, at);
}

/// The name of the edge, or the value of a scalar constant.
std::string quoted(const AnyOutput& edge) {
  const AnyTensor* const value = constant_value(edge);
  return value != nullptr && value->rank() == 0 ? value->to_string() : str_cat("'", edge.name(), "'");
}

AnyOutput flat(const AnyOutput& x) {
  if (x.shape().has_rank() && x.shape().rank() == 1) return x;
  return build<Reshape>({x, int32_constant(*x.graph(), std::vector<std::int64_t>{-1})});
}

/// The distance of the elements of a tensor along each of its dimensions: dims [rank] to [rank], int64.
Expr strides_of(const Expr& dims) {
  GraphStore& graph = *dims.graph();
  const AnyOutput number =
      build<Range>({int32_constant(graph, 0), AnyOutput(build<SizeOf>({dims})), int32_constant(graph, 1)});
  const AnyOutput later = build<Less>({AnyOutput(build<ExpandDims>({number, int32_constant(graph, 1)})),
                                       AnyOutput(build<ExpandDims>({number, int32_constant(graph, 0)}))});
  const Expr extents = 1.0 + Expr(cast_to(later, DType::int64)) * (dims - 1.0);
  return AnyOutput(build<Prod>({extents, int32_constant(graph, 1)}));
}
Expr dims_of(const AnyOutput& x) { return cast_to(AnyOutput(build<ShapeOf>({x})), DType::int64); }

/// The element of x at `index`, of a tensor that x broadcasts to: [].
AnyOutput element_at(const AnyOutput& x, const Expr& index) {
  if (x.shape().has_rank() && x.shape().rank() == 0) return x;
  GraphStore& graph = *x.graph();
  const Expr dims = dims_of(x);
  const Expr missing = Expr(AnyOutput(build<SizeOf>({index}))) - Expr(AnyOutput(build<SizeOf>({dims})));
  const Expr own = AnyOutput(build<Slice>({index, AnyOutput(build<ExpandDims>({missing, int32_constant(graph, 0)})),
                                           int32_constant(graph, std::vector<std::int64_t>{-1})}));
  const Expr is_repeated = AnyOutput(build<Equal>({dims, scalar_like(dims, 1.0)}));
  const Expr at = AnyOutput(build<Select>({is_repeated, zeros_like(own), own}));
  return build<Gather>({flat(x), sum_of_all(at * strides_of(dims))});
}

/// A claim about edges, which a step checks.
struct Claim {
  std::string text;                                         ///< of the error, if the claim does not hold
  AnyOutput holds;                                          ///< bool, any shape
  std::vector<std::pair<std::string, AnyOutput>> elements;  ///< shown where it does not hold; they broadcast to `holds`
  std::vector<AnyOutput> shapes;                            ///< the shapes of these edges are shown
};

/// x, once a step has found that the claim holds. If it does not, a branch finds the place and fails.
AnyOutput require_claim(const Claim& claim, const AnyOutput& x, std::string_view message, std::string_view name,
                        const At& at) {
  GraphStore& graph = *x.graph();
  const AnyOutput all_hold = build<All>({flat(claim.holds), int32_constant(graph, 0)});
  const auto build_it = [&](std::size_t branch) {
    BodyResults results;
    if (branch == 0) return results;
    const auto text = [&](std::string words) { return any_constant(graph, Tensor<std::string>(std::move(words)), {}); };
    std::vector<AnyOutput> data{text(message.empty() ? claim.text : str_cat(message, ": ", claim.text))};
    if (!claim.elements.empty()) {
      const Expr dims = dims_of(claim.holds);
      const AnyOutput is_held = cast_to(flat(claim.holds), DType::int32);
      const Expr position = AnyOutput(build<ArgMin>({is_held, int32_constant(graph, 0)}));
      const Expr index = AnyOutput(build<Mod>({position / strides_of(dims), dims}));
      data.insert(data.end(), {text("at"), index});
      for (const auto& [label, edge] : claim.elements) data.insert(data.end(), {text(label), element_at(edge, index)});
    }
    for (const AnyOutput& edge : claim.shapes) {
      data.insert(data.end(), {text(str_cat("shape of ", quoted(edge))), AnyOutput(build<ShapeOf>({edge}))});
    }
    results.targets.push_back(assert_that(Output<bool>::unchecked(all_hold), data, {.summarize = max_rank}));
    return results;
  };
  const Operation check = any_branch(all_hold, {"holds", "fails"}, build_it, name, at).operation();
  return any_with_dependencies({&check, 1}, x, at);
}

/// The value of an edge, if the graph knows it: a constant, or the shape of an edge.
std::optional<AnyTensor> value_known(const AnyOutput& edge) {
  if (const AnyTensor* const constant = constant_value(edge)) return *constant;
  const Node& node = edge.node();
  if (node.op->role != OpRole::shape) return std::nullopt;
  const PartialShape& shape = AnyOutput(edge.graph(), node.inputs[0]).shape();
  if (!shape.is_fully_defined()) return std::nullopt;
  Tensor<std::int32_t> dims({shape.rank()});
  for (int i = 0; i < shape.rank(); ++i) {
    if (!std::in_range<std::int32_t>(shape[i])) return std::nullopt;
    dims(i) = static_cast<std::int32_t>(shape[i]);
  }
  return dims;
}

template <class T>
bool has_relation(CheckedRelation relation, const T& a, const T& b) {
  if constexpr (contains_v<T, RealTypes>) {
    if (relation == CheckedRelation::less) return a < b;
    if (relation == CheckedRelation::less_equal) return a <= b;
  }
  return a == b;
}

/// How known elements break the relation; empty if they have it. Each tensor is a scalar or has the shape of the other.
std::string say_broken(CheckedRelation relation, const AnyTensor& x, const AnyTensor& y) {
  const Shape& shape = (x.rank() == 0 ? y : x).shape();
  return visit_dtype<AllTypes>(x.dtype(), [&]<class T>() -> std::string {
    const auto a = x.span<T>(), b = y.span<T>();
    for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
      const T &left = a[x.rank() == 0 ? 0 : static_cast<std::size_t>(i)],
              &right = b[y.rank() == 0 ? 0 : static_cast<std::size_t>(i)];
      if (has_relation<T>(relation, left, right)) continue;
      const auto strides = row_major_strides(shape);
      std::vector<std::int64_t> index;
      index.reserve(static_cast<std::size_t>(shape.rank()));
      for (int k = 0; k < shape.rank(); ++k) index.push_back(i / strides[static_cast<std::size_t>(k)] % shape[k]);
      return str_cat(" at ", dims_to_string(index), ": ", Tensor<T>(left).to_string(), " and ",
                     Tensor<T>(right).to_string(), ", of shapes ", x.shape().to_string(), " and ",
                     y.shape().to_string());
    }
    return {};
  });
}

BuiltNode build_relation(CheckedRelation relation, const AnyOutput& x, const AnyOutput& y, const At& at) {
  switch (relation) {
    case CheckedRelation::less:
      return build<Less>({x, y}, {}, at);
    case CheckedRelation::less_equal:
      return build<LessEqual>({x, y}, {}, at);
    default:
      return build<Equal>({x, y}, {}, at);
  }
}

/// `checked`, after a check that x has the relation to y.
AnyOutput require_relation(CheckedRelation relation, const AnyOutput& x, const AnyOutput& y, Claim claim,
                           const AnyOutput& checked, std::string_view message, std::string_view name, const At& at) {
  const std::optional<AnyTensor> left = value_known(x), right = value_known(y);
  if (left && right && left->dtype() == right->dtype() &&
      (left->rank() == 0 || right->rank() == 0 || left->shape() == right->shape())) {
    const std::string broken = say_broken(relation, *left, *right);
    if (!broken.empty()) fail_check(claim.text + broken, message, at);
    return checked;
  }
  claim.holds = build_relation(relation, x, y, at);
  return require_claim(claim, checked, message, name, at);
}

/// All elements but the last, and all but the first, in row-major order.
std::pair<AnyOutput, AnyOutput> neighbours(const AnyOutput& x) {
  GraphStore& graph = *x.graph();
  const AnyOutput all = flat(x);
  const Expr size = AnyOutput(build<ShapeOf>({all}));
  const Expr one = AnyOutput(build<Minimum>({size, scalar_like(size, 1.0)}));
  const AnyOutput begin = int32_constant(graph, std::vector<std::int64_t>{0});
  return {AnyOutput(build<Slice>({all, begin, size - one})), AnyOutput(build<Slice>({all, one, size - one}))};
}

}  // namespace assertions

AnyOutput any_assert_relation(CheckedRelation relation, const AnyOutput& x, const AnyOutput& y,
                              std::string_view message, const At& at) {
  constexpr std::string_view names[] = {"assert_equal", "assert_less", "assert_less_equal"};
  constexpr std::string_view says[] = {"equal to", "less than", "less than or equal to"};
  const auto which = static_cast<std::size_t>(relation);
  const Composite place(assertions::checked_graph(names[which], x, at), at.where);
  if (!y.is_valid()) assertions::fail_check(str_cat(names[which], ": y is an empty Output"), message, at);
  assertions::Claim claim{
      str_cat(names[which], ": ", assertions::quoted(x), " is not ", says[which], " ", assertions::quoted(y)),
      {},
      {{assertions::quoted(x), x}},
      {x}};
  const AnyTensor* const limit = constant_value(y);
  if (limit == nullptr || limit->rank() != 0) {  // the text has the value of a scalar
    claim.elements.emplace_back(assertions::quoted(y), y);
    claim.shapes.push_back(y);
  }
  return assertions::require_relation(relation, x, y, std::move(claim), x, message, names[which], at);
}

AnyOutput any_assert_sign(CheckedSign sign, const AnyOutput& x, std::string_view message, const At& at) {
  constexpr std::string_view names[] = {"assert_negative", "assert_positive", "assert_non_negative",
                                        "assert_non_positive"};
  constexpr std::string_view says[] = {"negative", "positive", "at least 0", "at most 0"};
  const auto which = static_cast<std::size_t>(sign);
  const Composite place(assertions::checked_graph(names[which], x, at), at.where);
  const AnyOutput zero = scalar_like(x, 0.0);
  const bool is_below = sign == CheckedSign::negative || sign == CheckedSign::non_positive;
  const bool strictly = sign == CheckedSign::negative || sign == CheckedSign::positive;
  assertions::Claim claim{str_cat(names[which], ": ", assertions::quoted(x), " is not ", says[which]),
                          {},
                          {{assertions::quoted(x), x}},
                          {x}};
  return assertions::require_relation(strictly ? CheckedRelation::less : CheckedRelation::less_equal,
                                      is_below ? x : zero, is_below ? zero : x, std::move(claim), x, message,
                                      names[which], at);
}

AnyOutput any_assert_order(bool strictly, const AnyOutput& x, std::string_view message, const At& at) {
  const std::string_view name = strictly ? "assert_strictly_increasing" : "assert_non_decreasing";
  const Composite place(assertions::checked_graph(name, x, at), at.where);
  const CheckedRelation relation = strictly ? CheckedRelation::less : CheckedRelation::less_equal;
  assertions::Claim claim{
      str_cat(name, ": ", assertions::quoted(x), strictly ? " does not increase" : " decreases"), {}, {}, {x}};
  if (const std::optional<AnyTensor> known = assertions::value_known(x)) {
    const std::int64_t pairs = std::max<std::int64_t>(0, known->num_elements() - 1);
    visit_dtype<RealTypes>(known->dtype(), [&]<class T>() {
      const T* const elements = known->span<T>().data();
      Tensor<T> first({pairs}), second({pairs});
      std::copy_n(elements, pairs, first.begin());
      if (pairs > 0) std::copy_n(elements + 1, pairs, second.begin());
      const std::string broken = assertions::say_broken(relation, first, second);
      if (!broken.empty()) assertions::fail_check(claim.text + broken, message, at);
    });
    return x;
  }
  const auto [before, after] = assertions::neighbours(x);
  claim.elements = {{"the element", before}, {"and the next", after}};
  return assertions::require_relation(relation, before, after, std::move(claim), x, message, name, at);
}

AnyOutput any_is_ordered(bool strictly, const AnyOutput& x, const At& at) {
  const std::string_view name = strictly ? "is_strictly_increasing" : "is_non_decreasing";
  GraphStore& graph = assertions::checked_graph(name, x, at);
  const Composite place(graph, at.where);
  const auto [before, after] = assertions::neighbours(x);
  const AnyOutput holds =
      assertions::build_relation(strictly ? CheckedRelation::less : CheckedRelation::less_equal, before, after, {});
  return build<All>({holds, int32_constant(graph, 0)}, {}, at);
}

AnyOutput any_assert_rank(bool at_least, const AnyOutput& x, int rank, std::string_view message, const At& at) {
  const std::string_view name = at_least ? "assert_rank_at_least" : "assert_rank";
  GraphStore& graph = assertions::checked_graph(name, x, at);
  const Composite place(graph, at.where);
  if (rank < 0 || rank > max_rank) {
    assertions::fail_check(str_cat(name, ": rank ", rank, " is outside [0, ", max_rank, "]"), message, at);
  }
  std::string text = str_cat(name, ": ", assertions::quoted(x), " has not rank ", rank, at_least ? " or more" : "");
  if (x.shape().has_rank()) {
    const int own = x.shape().rank();
    if (at_least ? own >= rank : own == rank) return x;
    assertions::fail_check(str_cat(text, ", but shape ", x.shape().to_string()), message, at);
  }
  const AnyOutput own = build<RankOf>({x}), wanted = int32_constant(graph, rank);
  assertions::Claim claim{std::move(text), {}, {}, {x}};
  claim.holds = at_least ? AnyOutput(build<LessEqual>({wanted, own})) : AnyOutput(build<Equal>({wanted, own}));
  const AnyOutput checked = assertions::require_claim(claim, x, message, name, at);
  return at_least ? checked : AnyOutput(build<EnsureShape>({checked}, {PartialShape::unknown(rank)}));
}

AnyOutput any_assert_within(const AnyOutput& x, double low, double high, const AnyOutput& named, std::string_view range,
                            std::string_view message, const At& at) {
  const std::string name = assertions::quoted(named);
  assertions::Claim claim{str_cat(name, " is not in ", range), {}, {{name, x}}, {named}};
  claim.holds = build<LogicalAnd>(
      {AnyOutput(build<LessEqual>({scalar_like(x, low), x})), AnyOutput(build<LessEqual>({x, scalar_like(x, high)}))});
  return assertions::require_claim(claim, x, message, "assert_within", at);
}

AnyOutput any_verify_all_finite(const AnyOutput& x, std::string_view message, const At& at) {
  const Composite place(assertions::checked_graph("verify_tensor_all_finite", x, at), at.where);
  const Operation check = build<CheckNumerics>({x}, {.message = std::string(message)});
  return any_with_dependencies({&check, 1}, x, at);
}

}  // namespace detail

AnyOutput assert_type(const AnyOutput& x, DType dtype, std::string_view message, const At& at) {
  static_cast<void>(detail::assertions::checked_graph("assert_type", x, at));
  if (x.dtype() == dtype) return x;
  detail::assertions::fail_check(str_cat("assert_type: ", detail::assertions::quoted(x), " is ", dtype_name(x.dtype()),
                                         x.shape().to_string(), ", and not ", dtype_name(dtype)),
                                 message, at);
}

AnyOutput assert_integer(const AnyOutput& x, std::string_view message, const At& at) {
  static_cast<void>(detail::assertions::checked_graph("assert_integer", x, at));
  if (in_mask(x.dtype(), dtype_mask<IntTypes>)) return x;
  detail::assertions::fail_check(str_cat("assert_integer: ", detail::assertions::quoted(x), " is ",
                                         dtype_name(x.dtype()), x.shape().to_string(), ", which has no integers"),
                                 message, at);
}

bool is_numeric_tensor(const AnyOutput& x) { return x.is_valid() && is_number(x.dtype()); }

Operation add_check_numerics_ops(Graph& graph, const At& at) {
  GraphStore& store = *graph.store();
  const Composite place(store, at.where);
  const ScopeGuard names = enter_name_scope(store, at.name.empty() ? "check_numerics" : at.name, at.where);
  const std::size_t num_nodes = graph.num_nodes();
  std::vector<Operation> checks;
  for (std::size_t i = 0; i < num_nodes; ++i) {
    const NodeId id(i);
    const Node& node = graph.node(id);
    if (node.function.is_valid() || node.op == &op_def<CheckNumerics>) continue;
    if (node.op->role == OpRole::enter || node.op->role == OpRole::switch_op) {
      detail::assertions::fail_check(
          str_cat("add_check_numerics_ops: node '", node.name, "' is control flow of the raw form"), {}, at);
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      if (!is_floating(node.outputs[k].dtype)) continue;
      const AnyOutput edge(&store, Endpoint{id, static_cast<std::int32_t>(k)});
      const ScopeGuard where_it_is = enter_colocation(store, edge.operation());
      const ScopeGuard after = enter_control_dependencies(store, checks, at.where);
      checks = {build<CheckNumerics>({edge}, {.message = edge.name()})};
    }
  }
  return detail::no_op_after(store, checks, {});
}

}  // namespace dflow
