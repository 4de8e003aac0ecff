#pragma once

#include <dflow/base/status.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/control/row_loops.hpp>
#include <dflow/train/recurrent/cells.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow {

struct RnnOptions {
  /// [batch]: after the length of a sequence its outputs are zero and its state stays. Empty: all steps count. Another
  /// number of lengths than sequences is InvalidArgument, in the step if it is not known before.
  Output<std::int32_t> sequence_length = {};
  bool time_major = false;  ///< x is [time, batch, inputs] and outputs [time, batch, units], which copies less
  bool reverse = false;     ///< from the last step to the first
  std::int64_t parallel_iterations = 32;
  std::int64_t max_kept_bytes = -1;  ///< as in WhileOptions
};

namespace detail {
using CellStep = std::function<RowResults(const AnyOutput& x, std::span<const AnyOutput> states)>;
/// The input of the steps in place of x [time, batch, inputs]: [time, batch, columns]. Called once, before the loop.
using PrepareSteps = std::function<AnyOutput(const AnyOutput& x)>;
/// The output of each step in the layout of x, and the last states.
RowResults any_rnn(const AnyOutput& x, std::span<const AnyOutput> initial, const RnnOptions& options,
                   const CellStep& step, const At& at, const PrepareSteps& prepare = {});
/// The output of each step x[t] [batch, inputs], and the last states.
RowResults any_static_rnn(const CellStep& step, const std::vector<AnyOutput>& x, std::vector<AnyOutput> states,
                          const RnnOptions& options, const At& at);
/// Inside the guard, all nodes are named after the network over x. Errors: InvalidArgument for an x that is empty.
/// Errors: InvalidArgument if x does not have three dimensions.
void require_sequences(const AnyOutput& x, const At& at);
[[nodiscard]] ScopeGuard enter_rnn(const AnyOutput& x, std::string_view name, const At& at);
/// x [time, batch, inputs] as rows [time batch, inputs], and back, with the extents of x.
AnyOutput steps_as_rows(const AnyOutput& x);
AnyOutput rows_as_steps(const AnyOutput& rows, const AnyOutput& x);
/// The lengths, checked when a step runs unless the shapes are known: one for each sequence of x, along dimension
/// `batch_axis` of x. Errors: InvalidArgument if the shapes say that it cannot be so.
AnyOutput checked_lengths(const Output<std::int32_t>& sequence_length, const AnyOutput& x, int batch_axis,
                          const At& at);

template <class Cell, class T>
CellStep cell_step(const Cell& cell, const At& at) {
  return [&cell, where = at.where](const AnyOutput& x, std::span<const AnyOutput> states) {
    using State = typename Cell::template State<T>;
    auto [output, next] = cell(Output<T>::unchecked(x), from_edges<State>(states), At{.where = where});
    return RowResults{edges_of(next), {output}};
  };
}

/// A cell that multiplies the inputs of all steps at once.
template <class Cell>
concept PreparesInputs = requires(const Cell& cell, const AnyOutput& x) {
  { cell.prepare(x) } -> std::same_as<PreparedInputs>;
  cell.step(x, x, x, x);
};

template <class Cell, class T>
RowResults cell_rnn(const Cell& cell, const AnyOutput& x, std::span<const AnyOutput> initial, const RnnOptions& options,
                    const At& at) {
  if constexpr (PreparesInputs<Cell>) {
    AnyOutput kernel;
    const PrepareSteps prepare = [&](const AnyOutput& steps) {
      const PreparedInputs prepared = cell.prepare(steps_as_rows(steps), {.where = at.where});
      kernel = prepared.kernel;
      return rows_as_steps(prepared.rows, steps);
    };
    const CellStep step = [&](const AnyOutput& row, std::span<const AnyOutput> states) {
      const auto [c, h] = cell.step(row, kernel, states[0], states[1], {.where = at.where});
      return RowResults{{c, h}, {h}};
    };
    return any_rnn(x, initial, options, step, at, prepare);
  } else {
    return any_rnn(x, initial, options, cell_step<Cell, T>(cell, at), at);
  }
}
}  // namespace detail

/// The outputs [batch, time, units] of a cell that goes over x [batch, time, inputs], and its last state. The graph
/// has a loop, so sequences may have any length.
///
/// ```cpp
/// df::LstmCell cell(128);
/// auto [outputs, state] = df::dynamic_rnn(cell, x, {.sequence_length = lengths});
/// auto logits = out(std::get<1>(state));  // h
/// ```
/// Thread safety: builds; see Graph.
/// Errors: InvalidArgument unless x has rank 3 and a known number of inputs, or the initial state does not fit.
template <class Cell, AllowedFor<Conv2D> T>
std::tuple<Output<T>, typename Cell::template State<T>> dynamic_rnn(
    const Cell& cell, const Output<T>& x, const typename Cell::template State<T>& initial_state,
    const RnnOptions& options = {}, const At& at = {}) {
  const std::vector<AnyOutput> initial = detail::edges_of(initial_state);
  const detail::RowResults all = detail::cell_rnn<Cell, T>(cell, x, initial, options, at);
  return {Output<T>::unchecked(all.gathered.at(0)), detail::from_edges<typename Cell::template State<T>>(all.states)};
}
/// The same from a state of zeros.
template <class Cell, AllowedFor<Conv2D> T>
std::tuple<Output<T>, typename Cell::template State<T>> dynamic_rnn(const Cell& cell, const Output<T>& x,
                                                                    const RnnOptions& options = {}, const At& at = {}) {
  detail::require_sequences(x, at);
  return dynamic_rnn(cell, x, cell.zero_state(x, options.time_major ? 1 : 0, at), options, at);
}

/// The same over steps x[t] [batch, inputs] that are edges of their own. The graph is as long as the sequence. The
/// options for the layout of x do not count.
template <class Cell, AllowedFor<Conv2D> T>
std::tuple<std::vector<Output<T>>, typename Cell::template State<T>> static_rnn(
    const Cell& cell, const std::vector<Output<T>>& x, const typename Cell::template State<T>& initial_state,
    const RnnOptions& options = {}, const At& at = {}) {
  const detail::RowResults all =
      detail::any_static_rnn(detail::cell_step<Cell, T>(cell, at), std::vector<AnyOutput>(x.begin(), x.end()),
                             detail::edges_of(initial_state), options, at);
  return {detail::typed<T>(all.gathered), detail::from_edges<typename Cell::template State<T>>(all.states)};
}

/// The same from a state of zeros.
///
/// Errors: also InvalidArgument if there is no step, since the batch is then not known.
template <class Cell, AllowedFor<Conv2D> T>
std::tuple<std::vector<Output<T>>, typename Cell::template State<T>> static_rnn(const Cell& cell,
                                                                                const std::vector<Output<T>>& x,
                                                                                const RnnOptions& options = {},
                                                                                const At& at = {}) {
  if (x.empty()) throw_error(Status::invalid_argument("static_rnn: no steps").with_location(at.where));
  return static_rnn(cell, x, cell.zero_state(x[0], 0, at), options, at);
}

/// Two cells over x, one from each end: their outputs and their last states. A layer above mostly reads
/// `concat(2, {forward, backward})`.
///
/// ```cpp
/// auto [forward, backward, f_state, b_state] = df::bidirectional_rnn(df::GruCell(64), df::GruCell(64), x);
/// ```
/// Variables are "bidirectional_rnn/fw/gru_cell/..." and "bidirectional_rnn/bw/gru_cell/...".
///
/// Errors: as `dynamic_rnn`.
template <class Forward, class Backward, AllowedFor<Conv2D> T>
std::tuple<Output<T>, Output<T>, typename Forward::template State<T>, typename Backward::template State<T>>
bidirectional_rnn(const Forward& forward, const Backward& backward, const Output<T>& x, RnnOptions options = {},
                  const At& at = {}) {
  const ScopeGuard names = detail::enter_rnn(x, at.name.empty() ? "bidirectional_rnn" : at.name, at);
  auto [f_outputs, f_state] = dynamic_rnn(forward, x, options, {.name = "fw", .where = at.where});
  options.reverse = !options.reverse;
  auto [b_outputs, b_state] = dynamic_rnn(backward, x, options, {.name = "bw", .where = at.where});
  return {f_outputs, b_outputs, f_state, b_state};
}

}  // namespace dflow
