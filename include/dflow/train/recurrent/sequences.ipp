#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/nn/softmax.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/reduction/top_k.hpp>
#include <dflow/train/recurrent/sequences.hpp>
#include <dflow/train/variables/layer_builder.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <utility>

namespace dflow {

namespace detail {

AnyOutput softmax_row_losses(const AnyOutput& rows, const AnyOutput& labels) {
  return build<SparseSoftmaxCrossEntropyWithLogits>({rows, labels});
}

AnyOutput any_sequence_loss(const AnyOutput& logits, const AnyOutput& targets, const AnyOutput& weights,
                            const SequenceLossOptions& options, bool by_example, RowLosses losses, const At& at) {
  const char layer[] = "sequence_loss";
  if (!logits.is_valid() || !targets.is_valid() || !weights.is_valid()) {
    reject_layer(layer, "logits, targets or weights are an empty Output", at);
  }
  const PartialShape& shape = logits.shape();
  if (!shape.has_rank() || shape.rank() != 3 || shape.dim(2) == dynamic) {
    reject_layer(
        layer,
        str_cat("logits need three dimensions and a known number of classes, their shape is ", shape.to_string()), at);
  }
  const PartialShape steps{shape.dim(0), shape.dim(1)};
  if (!targets.shape().is_compatible_with(steps) || !weights.shape().is_compatible_with(steps) ||
      !weights.shape().is_compatible_with(targets.shape())) {
    reject_layer(
        layer,
        str_cat("logits ", shape.to_string(), ", targets ", targets.shape().to_string(), " and weights ",
                weights.shape().to_string(), " are not [batch, time, classes], [batch, time] and [batch, time]"),
        at);
  }
  GraphStore& graph = *logits.graph();
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? layer : at.name, at.where);
  const Expr each =
      widened(losses(any_reshape(logits, IndexList{-1, shape.dim(2)}, {}), any_reshape(targets, IndexList(-1), {})));
  const Expr given = widened(weights);
  const AnyOutput rows = any_reshape(given, IndexList(-1), {});
  const AnyOutput last = int32_constant(graph, 1);
  const AnyOutput weighted = build<Reshape>({each * Expr(rows), shape_of(given)});
  Expr sums = build<Sum>({weighted, last});
  if (options.average_across_timesteps) sums = sums / (Expr(build<Sum>({given, last})) + 1e-12);
  if (by_example) return cast_to(sums, logits.dtype());
  const AnyOutput first = int32_constant(graph, 0);
  return cast_to(options.average_across_batch ? build<Mean>({sums, first}) : build<Sum>({sums, first}), logits.dtype());
}

/// The numbers of the rows of `width` beams for each row of x, int32 [batch * width].
inline AnyOutput beam_rows(const AnyOutput& x, std::int64_t width, std::string_view layer, const At& at) {
  require_positive(width, "beam_width", layer, at);
  const PartialShape& shape = x.shape();
  if (!shape.has_rank() || shape.rank() == 0) {
    reject_layer(layer, str_cat("a value needs rows, its shape is ", shape.to_string()), at);
  }
  const std::int64_t batch = shape.dim(0);
  if (width > std::numeric_limits<std::int32_t>::max() ||
      (batch > 0 && batch > std::numeric_limits<std::int32_t>::max() / width)) {
    reject_layer(layer, str_cat(batch, " rows have too many beams of width ", width), at);
  }
  const Expr extent = any_reshape(any_slice(shape_of(x), {0}, {1}, {}), IndexList(Shape{}), {});
  const AnyOutput all = counting(extent * static_cast<double>(width), {});
  return any_reshape(all, IndexList(batch == dynamic ? -1 : batch * width), {});
}

/// n / width, for int32 numbers n >= 0.
inline Expr beam_owner(const Expr& n, std::int64_t width) { return n / static_cast<double>(width); }

AnyOutput any_tile_beams(const AnyOutput& x, std::int64_t width, const At& at) {
  if (!x.is_valid()) reject_layer("tile_beams", "x is an empty Output", at);
  const Composite place(*x.graph(), at.where);
  const AnyOutput rows = beam_rows(x, width, "tile_beams", at);
  return build<Gather>({x, beam_owner(rows, width)}, {}, at);
}

RowResults any_beam_search(std::span<const AnyOutput> initial, BeamStep step, const BeamSearchOptions& options,
                           const At& at) {
  const char layer[] = "beam_search";
  for (const AnyOutput& state : initial) {
    if (!state.is_valid()) reject_layer(layer, "a part of the state is an empty Output", at);
  }
  if (initial.empty()) reject_layer(layer, "the cell has no state", at);
  require_positive(options.max_length, "max_length", layer, at);
  if (options.max_length > std::numeric_limits<std::int32_t>::max()) {
    reject_layer(layer, str_cat("max_length is ", options.max_length, ", which is too large"), at);
  }
  GraphStore& graph = *initial[0].graph();
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? layer : at.name, at.where);
  const std::int64_t width = options.beam_width, length = options.max_length;
  const Expr beams = beam_rows(initial[0], width, layer, at);
  const std::int64_t batch = initial[0].shape().dim(0), rows = batch == dynamic ? dynamic : batch * width;
  const auto reshaped = [](const AnyOutput& x, const IndexList& shape) { return any_reshape(x, shape, {}); };
  const auto flat = [&](const AnyOutput& x) { return reshaped(x, IndexList(rows == dynamic ? -1 : rows)); };
  const std::int64_t open_batch = batch == dynamic ? -1 : batch;

  const double none = -std::numeric_limits<double>::infinity();
  const Expr zero = zeros_like(beams), certain = cast_to(zero, DType::float32);
  const Expr owner = beam_owner(beams, width), first_beam = owner * static_cast<double>(width);
  const AnyOutput is_first = build<Equal>({beams, first_beam});
  Tensor<std::int32_t> padding({1, length}), positions({1, length});
  for (std::int64_t t = 0; t < length; ++t) {
    padding(0, t) = options.end_symbol;
    positions(0, t) = static_cast<std::int32_t>(t);
  }
  const AnyOutput position = any_constant(graph, positions, {});
  const Expr padded = any_constant(graph, padding, {});
  // The states of the loop: symbols, their sequences, lengths, scores, whether a sequence has ended; those of the cell.
  std::vector<AnyOutput> states{zero + static_cast<double>(options.start_symbol),
                                Expr(any_expand_dims(zero, 1, {})) + padded, zero,
                                build<Select>({is_first, certain, certain + none}), build<Less>({beams, zero})};
  const std::size_t own = states.size();
  for (const AnyOutput& state : initial) states.emplace_back(build<Gather>({state, owner}));

  const auto one_step = [&](std::span<const AnyOutput> before, std::span<const AnyOutput> row) {
    RowResults next = step(before[0], before.subspan(own));
    const AnyOutput logits = next.gathered.at(0);
    const std::int64_t symbols =
        logits.shape().has_rank() && logits.shape().rank() == 2 ? logits.shape().dim(1) : dynamic;
    if (symbols < 1 || options.end_symbol >= symbols || symbols > std::numeric_limits<std::int32_t>::max() / width) {
      reject_layer(layer,
                   str_cat("the logits have shape ", logits.shape().to_string(),
                           ", wanted [n, symbols] with a known number of symbols, the end symbol ", options.end_symbol,
                           " among them"),
                   at);
    }
    Expr log_probability = AnyOutput(build<LogSoftmax>({cast_to(logits, DType::float32)}));
    if (options.end_symbol >= 0) {  // behind its end a sequence goes on in one way
      Tensor<float> only_end({1, symbols});
      for (std::int64_t s = 0; s < symbols; ++s) only_end(0, s) = static_cast<float>(none);
      only_end(0, options.end_symbol) = 0;
      const Expr ended = zeros_like(log_probability) + Expr(any_constant(graph, only_end, {}));
      log_probability = AnyOutput(build<Select>({before[4], ended, log_probability}));
    }
    const Expr total = Expr(any_expand_dims(before[3], 1, {})) + log_probability;
    const auto best = build<TopKV2>({reshaped(total, IndexList{open_batch, width * symbols}),
                                     int32_constant(graph, static_cast<std::int32_t>(width))});
    const Expr chosen = flat(best.output(1));
    const Expr parent = beam_owner(chosen, symbols), symbol = chosen - parent * static_cast<double>(symbols);
    const AnyOutput from = first_beam + parent;
    const auto taken = [&](const AnyOutput& of) { return Expr(build<Gather>({of, from})); };
    const AnyOutput had_ended = taken(before[4]);
    const Expr sequences = taken(before[1]),
               is_here = cast_to(AnyOutput(build<Equal>({position, row[0]})), DType::int32);
    const Expr goes_on = cast_to(AnyOutput(build<LogicalNot>({had_ended})), DType::int32);
    const AnyOutput is_end = build<Equal>({symbol, scalar_like(symbol, options.end_symbol)});
    RowResults result{{symbol, sequences + (Expr(any_expand_dims(symbol, 1, {})) - sequences) * is_here,
                       taken(before[2]) + goes_on, flat(best.output(0)), build<LogicalOr>({had_ended, is_end})},
                      {}};
    for (const AnyOutput& state : next.states) result.states.emplace_back(taken(state));
    return result;
  };
  const std::vector<AnyOutput> times{counting(int32_constant(graph, static_cast<std::int32_t>(length)), {})};
  RowResults all = any_row_loop({.elems = times, .initial = states, .name = "steps"}, one_step, {.where = at.where});
  std::vector<AnyOutput> found{reshaped(all.states[1], IndexList{open_batch, width, length}),
                               reshaped(all.states[2], IndexList{open_batch, width}),
                               reshaped(all.states[3], IndexList{open_batch, width})};
  return {{all.states.begin() + static_cast<std::ptrdiff_t>(own), all.states.end()}, std::move(found)};
}

}  // namespace detail

}  // namespace dflow
