#pragma once

#include <dflow/train/recurrent/cells.hpp>
#include <dflow/train/recurrent/rnn.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace dflow {

struct AttentionOptions {
  std::int64_t units = 0;                   ///< columns in which memory and query are compared; 0: those of the memory
  std::int64_t outputs = 0;                 ///< columns of the output; 0: those of the cell's output
  Output<std::int32_t> memory_length = {};  ///< [batch]: positions that are seen, from 1. Empty: all positions
};

namespace detail {
/// Errors: InvalidArgument unless memory is [batch, time, columns] with known columns, whose number it gives.
std::int64_t memory_columns(const AnyOutput& memory, const At& at);
/// tanh(keys + query) as rows: keys [batch, time, units], query [batch, units] -> [batch time, units].
AnyOutput attention_rows(const AnyOutput& keys, const AnyOutput& query, const At& at);
/// The mean of memory [batch, time, columns] by the softmax of scores [batch time, 1]: [batch, columns].
AnyOutput attention_context(const AnyOutput& scores, const AnyOutput& memory, const AnyOutput& memory_length,
                            const At& at);
AnyOutput beside(const AnyOutput& x, const AnyOutput& context, const At& at);
/// The number of columns of a matrix. Errors: InvalidArgument unless it is known.
std::int64_t output_columns(const AnyOutput& output, const At& at);
}  // namespace detail

/// A cell that looks at a memory [batch, time, columns], mostly the outputs of an encoder, with the additive attention
/// of Bahdanau et al. 2014, arXiv:1409.0473, as TensorFlow's seq2seq.attention_decoder. The cell gets its input beside
/// the context of the step before. Its output y is the query: with k = memory keys, q = y query and the weights
/// softmax(v tanh(k + q)) of the positions, the context is the weighted mean of the memory. The output is
/// [y, context] output + bias. The state is a tuple of the cell's state and the context.
///
/// A decoder is the cell under `dynamic_rnn` over the wanted symbols (teacher forcing), or under `beam_search`, which
/// feeds its symbols back:
///
/// ```cpp
/// auto [memory, last] = df::dynamic_rnn(encoder, source);
/// df::AttentionCell decoder(df::GruCell(64), memory);
/// auto outputs = std::get<0>(df::dynamic_rnn(decoder, shifted, decoder.initial_state(last)));
/// auto searcher = decoder.with_memory(df::tile_beams(memory, 4));
/// auto beams = df::beam_search<float>(searcher, decoder.initial_state(last), embed, project, {.beam_width = 4});
/// ```
/// The variables are "attention_keys/kernel" [columns, units], "attention_query/kernel" [outputs of the cell, units],
/// "attention_scores/kernel" [units, 1], and "attention_output/kernel" and "bias", beside the cell's.
///
/// Errors: InvalidArgument unless the memory has rank 3 and a known number of columns; of a call: those of the cell.
template <class Cell, class T = float>
class AttentionCell {
 public:
  template <class U>
  using State = std::tuple<typename Cell::template State<U>, Output<U>>;  ///< of the cell, context

  AttentionCell(Cell cell, const Output<T>& memory, const AttentionOptions& options = {}, const At& at = {})
      : cell_(std::move(cell)),
        columns_(detail::memory_columns(memory, at)),
        outputs_(options.outputs),
        to_keys_(layer(options, columns_, "attention_keys")),
        to_query_(layer(options, columns_, "attention_query")),
        to_scores_(1, {.use_bias = false, .name = "attention_scores"}) {
    see(memory, options.memory_length, at);
  }

  /// The same cell, with the same variables, before another memory with as many columns.
  AttentionCell with_memory(const Output<T>& memory, const Output<std::int32_t>& memory_length = {},
                            const At& at = {}) const {
    AttentionCell other = *this;
    other.see(memory, memory_length, at);
    return other;
  }

  std::tuple<Output<T>, State<T>> operator()(const Output<T>& x, const State<T>& state, const At& at = {}) const {
    const At here{.where = at.where};
    const auto& [before, context] = state;
    const auto [y, next] = cell_(Output<T>::unchecked(detail::beside(x, context, here)), before, here);
    const auto rows = Output<T>::unchecked(detail::attention_rows(keys_, to_query_(y, here), here));
    const auto seen =
        Output<T>::unchecked(detail::attention_context(to_scores_(rows, here), memory_, memory_length_, here));
    if (!*to_output_) {
      *to_output_ = Dense(outputs_ > 0 ? outputs_ : detail::output_columns(y, here), {.name = "attention_output"});
    }
    return {(**to_output_)(Output<T>::unchecked(detail::beside(y, seen, here)), here), State<T>{next, seen}};
  }

  /// The state of the cell, mostly the last one of an encoder, and a context of zeros.
  State<T> initial_state(const typename Cell::template State<T>& state, const At& at = {}) const {
    return {state, Output<T>::unchecked(detail::zero_state(memory_, 0, columns_, "attention", at))};
  }
  /// Zeros for the batch of x, which is its dimension `axis`.
  State<T> zero_state(const Output<T>& x, int axis = 0, const At& at = {}) const {
    return {cell_.zero_state(x, axis, at),
            Output<T>::unchecked(detail::zero_state(x, axis, columns_, "attention", at))};
  }

 private:
  static Dense layer(const AttentionOptions& options, std::int64_t columns, std::string_view name) {
    return Dense(options.units > 0 ? options.units : columns, {.use_bias = false, .name = name});
  }
  void see(const Output<T>& memory, const Output<std::int32_t>& memory_length, const At& at) {
    detail::memory_columns(memory, at);
    memory_ = memory;
    memory_length_ = memory_length;
    keys_ = to_keys_(memory, {.where = at.where});
  }

  Cell cell_;
  std::int64_t columns_, outputs_;
  Dense to_keys_, to_query_, to_scores_;
  std::shared_ptr<std::optional<Dense>> to_output_ = std::make_shared<std::optional<Dense>>();  ///< of all copies
  Output<T> memory_, keys_;
  Output<std::int32_t> memory_length_;
};

}  // namespace dflow
