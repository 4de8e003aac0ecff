#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/row_loops.hpp>
#include <dflow/ops/control/tensor_array.hpp>
#include <dflow/ops/math/compare.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace dflow::detail {

/// How many rows there are: as far as it is known, and as an edge, int32 [].
struct RowCount {
  std::int64_t known = dynamic;
  AnyOutput edge;
};

/// Errors: InvalidArgument for tensors without rows, or of different numbers of them.
RowCount count_rows(std::span<const AnyOutput> elems, std::string_view name, const At& at) {
  RowCount count;
  for (const AnyOutput& each : elems) {
    const PartialShape& shape = each.shape();
    if (!shape.has_rank()) continue;
    const bool fits =
        shape.rank() > 0 && (shape.dim(0) == dynamic || count.known == dynamic || shape.dim(0) == count.known);
    if (!fits) {
      throw_error(Status::invalid_argument(
                      str_cat(name, ": '", each.name(), "' of shape ", shape.to_string(), " has not ",
                              count.known == dynamic ? "any" : str_cat("as many (", count.known, ")"), " rows"))
                      .with_location(at.where));
    }
    if (shape.dim(0) != dynamic) count.known = shape.dim(0);
  }
  GraphStore& graph = *elems[0].graph();
  if (count.known != dynamic && count.known <= std::numeric_limits<std::int32_t>::max()) {
    count.edge = any_constant(graph, Tensor<std::int32_t>(static_cast<std::int32_t>(count.known)), {});
  } else {
    const AnyOutput extents = shape_of(elems[0]);
    count.edge = any_reshape(any_slice(extents, {0}, {1}, {}), IndexList(Shape{}), {});
  }
  return count;
}

/// Gives the caller's source location to nodes that the library does not build for itself.
ScopeGuard enter_callers_place(GraphStore& graph, const std::optional<std::source_location>& around) {
  GraphStore::Scope scope = graph.scope();
  scope.where = around;
  return graph.enter(std::move(scope));
}

/// Variables of the loop: the number of the row, the states, and the lists that gather results.
class RowLoopBuilder {
 public:
  RowLoopBuilder(const RowLoop& loop, BuildRow build_row, std::optional<std::source_location> around, const At& at)
      : loop_(loop),
        build_row_(build_row),
        around_(around),
        where_(at.where),
        graph_(*loop.elems[0].graph()),
        count_(count_rows(loop.elems, loop.name, at)),
        zero_(any_constant(graph_, Tensor<std::int32_t>(0), {})) {
    for (const AnyOutput& each : loop.elems) {
      lists_.emplace_back(build<TensorListFromTensor>({each}));
      const bool is_known = each.shape().has_rank() && each.shape().dim(0) != dynamic && count_.known != dynamic;
      if (!is_known && lists_.size() > 1) checks_.push_back(has_as_many(lists_.back(), each));
    }
  }

  RowResults build_all() {
    std::vector<AnyOutput> initial{loop_.is_reverse ? AnyOutput(Expr(count_.edge) - 1.0) : zero_};
    std::vector<PartialShape> shapes{Shape{}};
    for (std::size_t i = 0; i < num_states(); ++i) {
      initial.push_back(loop_.initial[i]);
      const bool is_known = loop_.shapes.empty() && loop_.initial[i].is_valid();
      shapes.push_back(is_known ? loop_.initial[i].shape() : PartialShape::unknown());
      if (!loop_.shapes.empty()) shapes.back() = loop_.shapes[i];
    }
    for (std::size_t i = 0; i < loop_.num_gathered; ++i) {
      initial.push_back(any_array(count_.edge, PartialShape::unknown(), {}));
      shapes.push_back(PartialShape::unknown());
    }
    const ScopeGuard after = enter_control_dependencies(graph_, checks_);
    const BuiltNode node = any_loop(
        initial, [this](std::span<const AnyOutput> variables) { return goes_on(variables[0]); },
        [this](std::span<const AnyOutput> variables) { return go(variables); },
        {.shapes = shapes,
         .parallel_iterations = loop_.parallel_iterations,
         .max_kept_bytes = loop_.max_kept_bytes,
         .kind = loop_.name,
         .variable = "state",
         .num_unnamed = 1},
        {.name = "rows", .where = where_});
    return results(node);
  }

 private:
  std::size_t num_states() const noexcept { return loop_.initial.size(); }

  /// Fails the step unless the list has as many elements as there are rows.
  Operation has_as_many(const AnyOutput& list, const AnyOutput& of) const {
    const AnyOutput length = build<TensorListLength>({list});
    const AnyOutput is_one = build<Equal>({length, count_.edge});
    const std::string text =
        str_cat(loop_.name, ": '", of.name(), "' has not as many rows as '", loop_.elems[0].name(), "'");
    return build<Assert>({is_one, any_constant(graph_, Tensor<std::string>(text), {}), length, count_.edge});
  }

  BodyResults goes_on(const AnyOutput& i) const {
    if (loop_.is_reverse) return {{AnyOutput(build<GreaterEqual>({i, zero_}))}, {}};
    return {{AnyOutput(build<Less>({i, count_.edge}))}, {}};
  }

  BodyResults go(std::span<const AnyOutput> variables) {
    const AnyOutput& i = variables[0];
    std::vector<AnyOutput> rows;
    for (std::size_t k = 0; k < lists_.size(); ++k) {
      rows.push_back(any_array_read(lists_[k], i, loop_.elems[k].dtype(), {}));
    }
    const RowResults given = [&] {
      const ScopeGuard callers = enter_callers_place(graph_, around_);
      return build_row_(variables.subspan(1, num_states()), rows);
    }();
    BodyResults next{{AnyOutput(loop_.is_reverse ? Expr(i) - 1.0 : Expr(i) + 1.0)}, {}};
    next.edges.insert(next.edges.end(), given.states.begin(), given.states.end());
    for (std::size_t k = 0; k < loop_.num_gathered; ++k) {
      const AnyOutput& result = given.gathered.at(k);
      if (!result.is_valid()) {
        throw_error(
            Status::invalid_argument(str_cat(loop_.name, ": result ", k, " is an empty Output")).with_location(where_));
      }
      gathered_.push_back({result.dtype(), result.shape()});
      next.edges.emplace_back(build<TensorListSetItem>({variables[1 + num_states() + k], i, result}));
    }
    return next;
  }

  RowResults results(const BuiltNode& node) const {
    RowResults all;
    for (std::size_t i = 0; i < num_states(); ++i) all.states.push_back(node.output(static_cast<int>(1 + i)));
    for (std::size_t k = 0; k < loop_.num_gathered; ++k) {
      const AnyOutput list = node.output(static_cast<int>(1 + num_states() + k));
      all.gathered.push_back(stacked(list, gathered_[k]));
    }
    return all;
  }

  AnyOutput stacked(const AnyOutput& list, const OutputInfo& row) const {
    const TensorListStack::Attrs attrs{.num_elements = count_.known == dynamic ? -1 : count_.known};
    const auto stack = [&](const AnyOutput& shape) {
      return AnyOutput(build<TensorListStack>({list, shape}, attrs, {}, one_type(row.dtype)));
    };
    const bool has_rows = count_.known != dynamic && count_.known > 0;
    const bool asks = !has_rows && loop_.first_extent.is_valid() && row.shape.has_rank() && row.shape.rank() > 0;
    if (!asks || row.shape.dim(0) != dynamic) return stack(shape_to_ask_for(graph_, row.shape));
    PartialShape all{count_.known, dynamic}, rest{};
    for (int i = 1; i < row.shape.rank(); ++i) {
      all = all.concatenated({row.shape.dim(i)});
      rest = rest.concatenated({row.shape.dim(i)});
    }
    const AnyOutput extents = any_concat(0, std::array{loop_.first_extent, shape_to_ask_for(graph_, rest)});
    return build<EnsureShape>({stack(extents)}, {.shape = all});
  }

  const RowLoop& loop_;
  BuildRow build_row_;
  const std::optional<std::source_location> around_;
  const std::source_location where_;
  GraphStore& graph_;
  RowCount count_;
  AnyOutput zero_;
  std::vector<AnyOutput> lists_;      ///< of the rows
  std::vector<Operation> checks_;     ///< that all have as many, where the graph does not tell
  std::vector<OutputInfo> gathered_;  ///< results of one iteration
};

RowResults any_row_loop(const RowLoop& loop, BuildRow build_row, const At& at) {
  const auto is_empty = [](const AnyOutput& edge) { return !edge.is_valid(); };
  if (loop.elems.empty() || std::any_of(loop.elems.begin(), loop.elems.end(), is_empty)) {
    throw_error(Status::invalid_argument(str_cat(loop.name, ": there are no rows, or an edge is empty"))
                    .with_location(at.where));
  }
  if (std::any_of(loop.initial.begin(), loop.initial.end(), is_empty)) {
    throw_error(
        Status::invalid_argument(str_cat(loop.name, ": a state begins with an empty Output")).with_location(at.where));
  }
  if (!loop.shapes.empty() && loop.shapes.size() != loop.initial.size()) {
    throw_error(Status::invalid_argument(str_cat(loop.name, ": ", loop.shapes.size(), " shapes are declared for ",
                                                 loop.initial.size(), " states"))
                    .with_location(at.where));
  }
  GraphStore& graph = *loop.elems[0].graph();
  const std::optional<std::source_location> around = graph.scope().where;
  const ScopeGuard place = enter_place(graph, at.where);
  GraphStore::Draft draft(graph);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? loop.name : at.name, at.where);
  RowResults all = RowLoopBuilder(loop, build_row, around, at).build_all();
  draft.publish();
  return all;
}

}  // namespace dflow::detail
