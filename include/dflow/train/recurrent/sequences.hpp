#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/train/recurrent/rnn.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

// Losses of sequences, and the search for the best sequence of a cell.

struct SequenceLossOptions {
  bool average_across_timesteps = true;  ///< divides the sum of a sequence by the sum of its weights
  bool average_across_batch = true;      ///< of `sequence_loss`: the mean of the sequences in place of their sum
};

namespace detail {
using RowLosses = FunctionRef<AnyOutput(const AnyOutput& rows, const AnyOutput& labels)>;
AnyOutput any_sequence_loss(const AnyOutput& logits, const AnyOutput& targets, const AnyOutput& weights,
                            const SequenceLossOptions& options, bool by_example, RowLosses losses, const At& at);
/// The default of the losses of rows.
AnyOutput softmax_row_losses(const AnyOutput& rows, const AnyOutput& labels);

template <class T, class I, class F>
Output<T> sequence_loss_of(const Output<T>& logits, const Output<I>& targets, const Output<T>& weights,
                           const SequenceLossOptions& options, bool by_example, F& losses, const At& at) {
  const auto erased = [&](const AnyOutput& rows, const AnyOutput& labels) -> AnyOutput {
    return losses(Output<T>::unchecked(rows), Output<I>::unchecked(labels));
  };
  return Output<T>::unchecked(any_sequence_loss(logits, targets, weights, options, by_example, erased, at));
}
}  // namespace detail

/// The weighted cross entropy of each sequence, [batch]: logits [batch, time, classes], targets [batch, time], int32 or
/// int64, and weights [batch, time], which are 0 behind the end of a sequence. As TensorFlow's
/// seq2seq.sequence_loss_by_example: the sum over the time steps, divided by the sum of the weights + 1e-12 unless the
/// options say otherwise.
///
/// ```cpp
/// auto losses = df::sequence_loss_by_example(logits, targets, weights);
/// ```
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument unless the shapes fit and the number of classes is known; in the step for a target outside
/// of [0, classes).
template <class T, class I>
  requires contains_v<T, FloatTypes> && contains_v<I, IndexTypes>
Output<T> sequence_loss_by_example(const Output<T>& logits, const Output<I>& targets, const Output<T>& weights,
                                   const SequenceLossOptions& options = {}, const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_sequence_loss(logits, targets, weights, options, true, detail::softmax_row_losses, at));
}

/// The mean over the batch of `sequence_loss_by_example`, a scalar, as TensorFlow's seq2seq.sequence_loss.
///
/// Errors: as `sequence_loss_by_example`.
template <class T, class I>
  requires contains_v<T, FloatTypes> && contains_v<I, IndexTypes>
Output<T> sequence_loss(const Output<T>& logits, const Output<I>& targets, const Output<T>& weights,
                        const SequenceLossOptions& options = {}, const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_sequence_loss(logits, targets, weights, options, false, detail::softmax_row_losses, at));
}

/// The two with another loss: `losses(rows, labels)` gives the loss of each row, [n]. The rows [n, columns] are those
/// of `outputs` [batch, time, columns], the labels [n] those of `targets`.
///
/// ```cpp
/// auto loss = df::sequence_loss_by(outputs, targets, weights, [&](auto rows, auto labels) {
///   return df::sampled_softmax_loss(w, b, rows, df::reshape(labels, {-1, 1}), {.num_sampled = 64, .num_classes = n});
/// });
/// ```
/// Errors: as `sequence_loss_by_example`.
template <class T, class I, class F>
  requires contains_v<T, FloatTypes> && contains_v<I, IndexTypes>
Output<T> sequence_loss_by(const Output<T>& outputs, const Output<I>& targets, const Output<T>& weights, F&& losses,
                           const SequenceLossOptions& options = {}, const At& at = {}) {
  return detail::sequence_loss_of(outputs, targets, weights, options, false, losses, at);
}

struct BeamSearchOptions {
  std::int64_t beam_width = 4;    ///< sequences that are kept of each row of the batch
  std::int64_t max_length = 1;    ///< the most symbols of a sequence
  std::int32_t start_symbol = 0;  ///< the first input of the cell
  std::int32_t end_symbol = -1;   ///< a sequence ends with it; negative: all have `max_length` symbols
};

/// The result of `beam_search`, the best sequence first.
template <class State>
struct Beams {
  Output<std::int32_t> symbols;  ///< [batch, beam_width, max_length]; behind the end of a sequence: the end symbol
  Output<std::int32_t> lengths;  ///< [batch, beam_width]: symbols of each, with its end symbol
  Output<float> scores;          ///< [batch, beam_width]: sums of the logarithms of the probabilities; decreasing
  State state;                   ///< the cell's last states, with batch * beam_width rows
};

namespace detail {
/// The next states and, gathered, the logits [n, symbols].
using BeamStep = FunctionRef<RowResults(const AnyOutput& symbols, std::span<const AnyOutput> states)>;
AnyOutput any_tile_beams(const AnyOutput& x, std::int64_t width, const At& at);
/// Symbols, lengths and scores, and the last states.
RowResults any_beam_search(std::span<const AnyOutput> initial, BeamStep step, const BeamSearchOptions& options,
                           const At& at);
}  // namespace detail

/// Each row of x [batch, ...] `width` times, one after the other: [batch * width, ...]. It makes values that a cell
/// holds, such as the memory of an attention, fit a beam search.
///
/// Errors: InvalidArgument for a scalar, and unless the width is positive.
template <Element T>
  requires contains_v<T, AllTypes>
Output<T> tile_beams(const Output<T>& x, std::int64_t width, const At& at = {}) {
  return Output<T>::unchecked(detail::any_tile_beams(x, width, at));
}

/// The most probable sequences of a cell, found by keeping the best `beam_width` beginnings of each row of the batch at
/// every step. The loop is in the graph. A beam of width 1 is the greedy decoder, which feeds its symbols back.
/// - `initial` is the cell's state for each row of the batch.
/// - `embed(symbols)` gives the cell's input [n, inputs] for int32 symbols [n].
/// - `project(output)` gives the logits [n, symbols] of a cell's output [n, units].
///
/// ```cpp
/// auto beams = df::beam_search<float>(cell, encoder_state, [&](auto ids) { return df::embedding_lookup(table, ids); },
///                              [&](auto output) { return dense(output); },
///                              {.beam_width = 8, .max_length = 20, .start_symbol = 1, .end_symbol = 2});
/// ```
/// If there are fewer sequences than the beam is wide, the scores of the rest are minus infinity. Of equal scores the
/// earlier beam and the lower symbol come first.
///
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument unless width and length are positive, the end symbol is a symbol, the number of symbols is
/// known, and the parts of the state have a row for each row of the batch.
template <class T, class Cell, class Embed, class Project>
Beams<typename Cell::template State<T>> beam_search(const Cell& cell, const typename Cell::template State<T>& initial,
                                                    Embed&& embed, Project&& project, const BeamSearchOptions& options,
                                                    const At& at = {}) {
  using State = typename Cell::template State<T>;
  const std::vector<AnyOutput> states = detail::edges_of(initial);
  const detail::RowResults all = detail::any_beam_search(
      states,
      [&](const AnyOutput& symbols, std::span<const AnyOutput> before) {
        auto [output, next] = cell(embed(Output<std::int32_t>::unchecked(symbols)), detail::from_edges<State>(before),
                                   At{.where = at.where});
        return detail::RowResults{detail::edges_of(next), {AnyOutput(project(output))}};
      },
      options, at);
  return {Output<std::int32_t>::unchecked(all.gathered[0]), Output<std::int32_t>::unchecked(all.gathered[1]),
          Output<float>::unchecked(all.gathered[2]), detail::from_edges<State>(all.states)};
}

}  // namespace dflow
