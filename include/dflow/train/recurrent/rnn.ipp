#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/train/recurrent/rnn.hpp>
#include <dflow/train/variables/layer_builder.hpp>

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace dflow {

namespace detail {

/// is_under_way: bool [batch].
inline RowResults masked(const AnyOutput& is_under_way, RowResults next, std::span<const AnyOutput> states) {
  const auto choose = [&](AnyOutput& value, const AnyOutput& otherwise) {
    value = build<Select>({is_under_way, value, otherwise});
  };
  for (AnyOutput& output : next.gathered) choose(output, zeros_like(output));
  for (std::size_t i = 0; i < states.size(); ++i) choose(next.states.at(i), states[i]);
  return next;
}

/// The next results of sequences that go on at step `step`; other sequences keep their states, with outputs of zeros.
inline RowResults masked_step(std::int32_t step, const AnyOutput& sequence_length, RowResults next,
                              std::span<const AnyOutput> states) {
  const AnyOutput t = any_constant(*sequence_length.graph(), Tensor<std::int32_t>(step), {});
  return masked(build<Less>({t, sequence_length}), std::move(next), states);
}

AnyOutput checked_lengths(const Output<std::int32_t>& sequence_length, const AnyOutput& x, int batch_axis,
                          const At& at) {
  const PartialShape &lengths = sequence_length.shape(), &shape = x.shape();
  const std::int64_t batch = shape.has_rank() ? shape.dim(batch_axis) : dynamic;
  if (!lengths.is_compatible_with(PartialShape{batch})) {
    reject_layer("rnn",
                 str_cat("sequence_length has shape ", lengths.to_string(), ", wanted a length for each sequence of x ",
                         shape.to_string()),
                 at);
  }
  if (batch != dynamic && lengths.has_rank() && lengths.dim(0) != dynamic) return sequence_length;
  GraphStore& graph = *x.graph();
  const AnyOutput given = shape_of(sequence_length), wanted = any_slice(shape_of(x), {batch_axis}, {1}, {});
  AnyOutput fits = build<All>({build<Equal>({given, wanted}), int32_constant(graph, 0)});
  if (!lengths.has_rank()) {
    fits = build<LogicalAnd>({fits, build<Equal>({build<RankOf>({sequence_length}), int32_constant(graph, 1)})});
  }
  const char text[] = "rnn: sequence_length has not one length per sequence of x";
  const Operation check =
      build<Assert>({fits, any_constant(graph, Tensor<std::string>(std::string(text)), {}), given, wanted}, {},
                    {.name = "check_sequence_length"});
  return any_with_dependencies({&check, 1}, sequence_length, {});
}

RowResults any_static_rnn(const CellStep& step, const std::vector<AnyOutput>& x, std::vector<AnyOutput> states,
                          const RnnOptions& options, const At& at) {
  RowResults all{std::move(states), std::vector<AnyOutput>(x.size())};
  AnyOutput lengths;
  std::optional<Composite> place;
  if (!x.empty() && x[0].is_valid()) place.emplace(*x[0].graph(), at.where);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const std::size_t t = options.reverse ? x.size() - 1 - k : k;
    RowResults next = step(x[t], all.states);
    if (options.sequence_length.is_valid()) {
      if (k == 0) lengths = checked_lengths(options.sequence_length, x[t], 0, at);
      next = masked_step(static_cast<std::int32_t>(t), lengths, std::move(next), all.states);
    }
    all.gathered[t] = next.gathered.at(0);
    all.states = std::move(next.states);
  }
  return all;
}

ScopeGuard enter_rnn(const AnyOutput& x, std::string_view name, const At& at) {
  if (!x.is_valid()) reject_layer(name, "x is an empty Output", at);
  return enter_name_scope(*x.graph(), name, at.where);
}

AnyOutput steps_as_rows(const AnyOutput& x) {
  const PartialShape& shape = x.shape();
  if (!shape.has_rank() || shape.rank() != 3 || shape.dim(2) == dynamic) {
    reject_layer(
        "rnn", str_cat("x needs three dimensions and a known number of inputs, its shape is ", shape.to_string()), {});
  }
  return any_reshape(x, IndexList{-1, shape.dim(2)}, {});
}

AnyOutput rows_as_steps(const AnyOutput& rows, const AnyOutput& x) {
  const std::int64_t time = x.shape().dim(0), batch = x.shape().dim(1), columns = rows.shape().dim(1);
  // If there are no rows, the open extent may have any value.
  const bool is_decided = batch != dynamic || time > 0;
  if (time != dynamic && is_decided) {
    return any_reshape(rows, IndexList{time, batch == dynamic ? -1 : batch, columns}, {});
  }
  if (batch > 0) return any_reshape(rows, IndexList{-1, batch, columns}, {});
  GraphStore& graph = *rows.graph();
  const AnyOutput extents = any_slice(shape_of(x), {0}, {2}, {});
  const AnyOutput last = IndexList(columns).edge(graph, DType::int32, {});
  const AnyOutput steps = build<Reshape>({rows, any_concat(0, std::array{extents, last})});
  return build<EnsureShape>({steps}, {.shape = {time, batch, columns}});
}

void require_sequences(const AnyOutput& x, const At& at) {
  if (x.is_valid() && (!x.shape().has_rank() || x.shape().rank() == 3)) return;
  reject_layer("rnn",
               str_cat("x has three dimensions, batch, time and inputs, its shape is ",
                       x.is_valid() ? x.shape().to_string() : "that of an empty Output"),
               at);
}

RowResults any_rnn(const AnyOutput& x, std::span<const AnyOutput> initial, const RnnOptions& options,
                   const CellStep& step, const At& at, const PrepareSteps& prepare) {
  require_sequences(x, at);
  const bool has_lengths = options.sequence_length.is_valid();
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? "rnn" : at.name, at.where);
  AnyOutput lengths;
  if (has_lengths) lengths = checked_lengths(options.sequence_length, x, options.time_major ? 1 : 0, at);
  const auto exchanged = [&](const AnyOutput& of) { return any_transpose(of, {1, 0, 2}, {}); };
  std::vector<AnyOutput> elems{options.time_major ? x : exchanged(x)};
  if (prepare) elems[0] = prepare(elems[0]);
  if (has_lengths) {
    const AnyOutput count = any_reshape(any_slice(shape_of(elems[0]), {0}, {1}, {}), IndexList(Shape{}), {});
    const AnyOutput steps = any_expand_dims(counting(count, {}), 1, {});
    elems.emplace_back(build<Less>({steps, any_expand_dims(lengths, 0, {})}));
  }
  const bool is_batch_known = elems[0].shape().has_rank() && elems[0].shape().dim(1) != dynamic;
  const AnyOutput batch = is_batch_known ? AnyOutput() : any_slice(shape_of(elems[0]), {1}, {1}, {});
  const std::string own_names = graph.scope().name_prefix;
  const auto one_step = [&](std::span<const AnyOutput> states, std::span<const AnyOutput> rows) {
    // Nodes that the cell makes at its first call are named as outside of the loop: "rnn/gru_cell/gates/kernel".
    std::optional<ScopeGuard> outside;
    if (!prepare) {
      GraphStore::Scope scope = graph.scope();
      scope.name_prefix = own_names;
      outside.emplace(graph.enter(std::move(scope)));
    }
    RowResults next = step(rows[0], states);
    outside.reset();
    return has_lengths ? masked(rows[1], std::move(next), states) : next;
  };
  RowResults all = any_row_loop({.elems = elems,
                                 .initial = initial,
                                 .is_reverse = options.reverse,
                                 .num_gathered = 1,
                                 .first_extent = batch,
                                 .parallel_iterations = options.parallel_iterations,
                                 .max_kept_bytes = options.max_kept_bytes,
                                 .name = "steps"},
                                one_step, {.where = at.where});
  if (!options.time_major) all.gathered[0] = exchanged(all.gathered[0]);
  return all;
}

}  // namespace detail

}  // namespace dflow
