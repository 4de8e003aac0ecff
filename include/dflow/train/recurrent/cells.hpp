#pragma once

#include <dflow/ops/nn/dropout.hpp>
#include <dflow/ops/reduction/add_n.hpp>
#include <dflow/train/layers.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace dflow {

// Recurrent cells. A cell is a layer that is called with an input x [batch, inputs] and a state. It gives an output
// [batch, units] and the next state: `auto [output, next] = cell(x, state)`. Its variables are made at the first call,
// also inside a loop. If a variable scope says so (`VariableScopeOptions::compute`), the cell multiplies by kernels
// and adds biases in another element type than x's; gates and states keep x's type.

struct RnnCellOptions {
  Activation activation = Activation::tanh;
  Initializer kernel_initializer = init::glorot_uniform();
  Initializer bias_initializer = init::zeros();
  Regularizer kernel_regularizer = {};
  std::string_view name = "rnn_cell";
};

struct LstmCellOptions {
  double forget_bias = 1;                          ///< added to the input of the forget gate
  bool use_peepholes = false;                      ///< gates see the cell as well (Gers and Schmidhuber 2000)
  bool couple_gates = false;                       ///< the forget gate is 1 - the input gate (ONNX's input_forget)
  std::optional<double> cell_clip = std::nullopt;  ///< bounds the cell's elements
  std::int64_t projection = 0;                     ///< outputs of a linear layer behind it; 0: none (Sak et al. 2014)
  Initializer kernel_initializer = init::glorot_uniform();
  Initializer bias_initializer = init::zeros();
  Regularizer kernel_regularizer = {};
  std::string_view name = "lstm_cell";
};

struct GruCellOptions {
  bool reset_after = false;  ///< r is multiplied by the product, not by the state (ONNX's linear_before_reset)
  Initializer kernel_initializer = init::glorot_uniform();
  Initializer gate_bias_initializer = init::ones();
  Initializer bias_initializer = init::zeros();
  Regularizer kernel_regularizer = {};
  std::string_view name = "gru_cell";
};

namespace detail {

/// The part of a cell that is computed from the inputs of all steps at once, before the loop over them.
struct PreparedInputs {
  AnyOutput rows;    ///< [rows, columns], for x [rows, inputs]
  AnyOutput kernel;  ///< each step multiplies its state by it
};

/// Zeros [batch, units]. The batch is dimension `axis` of x.
AnyOutput zero_state(const AnyOutput& x, int axis, std::int64_t units, std::string_view layer, const At& at);
/// Inside the guard, all nodes are named after one of the stacked cells, or after all. Errors: InvalidArgument for an
/// x that is empty.
[[nodiscard]] ScopeGuard enter_cell(const AnyOutput& x, std::string_view name, const At& at);
}  // namespace detail

/// h' = activation([x, h] kernel + bias) is output and state. The variables are "kernel" [inputs + units, units] and
/// "bias" [units], as in TensorFlow's BasicRNNCell.
///
/// Errors, of a call: InvalidArgument unless x and h are matrices with known numbers of columns.
class BasicRnnCell : public Layer {
 public:
  template <class T>
  using State = Output<T>;

  explicit BasicRnnCell(std::int64_t units, RnnCellOptions options = {});
  BasicRnnCell(const BasicRnnCell&) = default;
  BasicRnnCell& operator=(const BasicRnnCell&) = default;

  template <AllowedFor<Conv2D> T>
  std::tuple<Output<T>, Output<T>> operator()(const Output<T>& x, const Output<T>& h, const At& at = {}) const {
    const auto next = Output<T>::unchecked(call(x, h, at));
    return {next, next};
  }
  /// The batch is dimension `axis` of x.
  template <AllowedFor<Conv2D> T>
  Output<T> zero_state(const Output<T>& x, int axis = 0, const At& at = {}) const {
    return Output<T>::unchecked(detail::zero_state(x, axis, units_, name(), at));
  }

 private:
  AnyOutput call(const AnyOutput& x, const AnyOutput& h, const At& at) const;

  std::int64_t units_;
  RnnCellOptions options_;
};

/// Long short-term memory (Hochreiter and Schmidhuber 1997; Zaremba et al. 2014, arXiv:1409.2329).
/// The state is (c, h), each [batch, units]. The quarters of [x, h] kernel + bias are i, j, f, o. Then c' = c
/// sigmoid(f + forget_bias) + sigmoid(i) tanh(j), and the output is h' = tanh(c') sigmoid(o).
/// The variables are "kernel" [inputs + units, 4 units] and "bias" [4 units], as in TensorFlow's LSTMCell. Peepholes
/// add "w_i_diag", "w_f_diag" and "w_o_diag" [units]. A projection adds "projection/kernel" [units, projection], and h
/// then has `projection` columns. With `couple_gates`, f takes no part.
///
/// Errors, of a call: InvalidArgument unless x and h are matrices with known numbers of columns, equal to the numbers
/// of the first call.
class LstmCell : public Layer {
 public:
  template <class T>
  using State = std::tuple<Output<T>, Output<T>>;  ///< c, h

  explicit LstmCell(std::int64_t units, LstmCellOptions options = {});
  LstmCell(const LstmCell&) = default;
  LstmCell& operator=(const LstmCell&) = default;

  template <AllowedFor<Conv2D> T>
  std::tuple<Output<T>, State<T>> operator()(const Output<T>& x, const State<T>& state, const At& at = {}) const {
    const auto [c, h] = call(x, std::get<0>(state), std::get<1>(state), at);
    const auto output = Output<T>::unchecked(h);
    return {output, State<T>{Output<T>::unchecked(c), output}};
  }
  /// For loops over steps: x [rows, inputs] has any number of rows. Each step then gets its rows and the kernel. The
  /// sums are those of a call in another order.
  detail::PreparedInputs prepare(const AnyOutput& x, const At& at = {}) const;
  /// {c', h'}
  std::pair<AnyOutput, AnyOutput> step(const AnyOutput& row, const AnyOutput& kernel, const AnyOutput& c,
                                       const AnyOutput& h, const At& at = {}) const;

  template <AllowedFor<Conv2D> T>
  State<T> zero_state(const Output<T>& x, int axis = 0, const At& at = {}) const {
    const std::int64_t outputs = options_.projection > 0 ? options_.projection : units_;
    return {Output<T>::unchecked(detail::zero_state(x, axis, units_, name(), at)),
            Output<T>::unchecked(detail::zero_state(x, axis, outputs, name(), at))};
  }

 private:
  std::pair<AnyOutput, AnyOutput> call(const AnyOutput& x, const AnyOutput& c, const AnyOutput& h, const At& at) const;
  void make_variables(detail::LayerBuilder& layer, DType dtype, std::int64_t inputs) const;
  std::int64_t num_outputs() const noexcept { return options_.projection > 0 ? options_.projection : units_; }
  std::pair<AnyOutput, AnyOutput> next_state(const detail::LayerBuilder& layer, const AnyOutput& gates,
                                             const AnyOutput& c) const;

  std::int64_t units_;
  LstmCellOptions options_;
};

/// Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078), as TensorFlow's GRUCell. r and u are the halves of
/// sigmoid([x, h] kernel + bias of "gates"), and c = tanh([x, r h] kernel + bias of "candidate"). h' = u h + (1 - u) c
/// is output and state. With `reset_after`, c = tanh(x W + bias + r (h R + recurrent bias)), where W and R are the
/// upper and the lower rows of the candidate's kernel, and "candidate/recurrent_bias" [units] is a variable too.
///
/// Errors, of a call: InvalidArgument unless x and h are matrices with known numbers of columns.
class GruCell : public Layer {
 public:
  template <class T>
  using State = Output<T>;

  explicit GruCell(std::int64_t units, GruCellOptions options = {});
  GruCell(const GruCell&) = default;
  GruCell& operator=(const GruCell&) = default;

  template <AllowedFor<Conv2D> T>
  std::tuple<Output<T>, Output<T>> operator()(const Output<T>& x, const Output<T>& h, const At& at = {}) const {
    const auto next = Output<T>::unchecked(call(x, h, at));
    return {next, next};
  }
  template <AllowedFor<Conv2D> T>
  Output<T> zero_state(const Output<T>& x, int axis = 0, const At& at = {}) const {
    return Output<T>::unchecked(detail::zero_state(x, axis, units_, name(), at));
  }

 private:
  AnyOutput call(const AnyOutput& x, const AnyOutput& h, const At& at) const;

  std::int64_t units_;
  GruCellOptions options_;
};

/// Cells one on top of the other: each gets the output of the cell below, and all have their own state. Their
/// variables are "multi_rnn_cell/cell_0/lstm_cell/kernel" and so on, as in TensorFlow's MultiRNNCell.
template <class... Cells>
class StackedCells {
 public:
  template <class T>
  using State = std::tuple<typename Cells::template State<T>...>;

  explicit StackedCells(Cells... cells) : cells_(std::move(cells)...) {}

  template <AllowedFor<Conv2D> T>
  std::tuple<Output<T>, State<T>> operator()(const Output<T>& x, const State<T>& state, const At& at = {}) const {
    Output<T> output = x;
    State<T> next = state;
    const ScopeGuard names = detail::enter_cell(x, at.name.empty() ? "multi_rnn_cell" : at.name, at);
    call(output, next, at, std::index_sequence_for<Cells...>());
    return {output, next};
  }
  template <AllowedFor<Conv2D> T>
  State<T> zero_state(const Output<T>& x, int axis = 0, const At& at = {}) const {
    return std::apply([&](const Cells&... each) { return State<T>{each.zero_state(x, axis, at)...}; }, cells_);
  }

 private:
  template <class T, std::size_t... I>
  void call(Output<T>& output, State<T>& state, const At& at, std::index_sequence<I...>) const {
    const auto one = [&](const auto& cell, auto& its, std::size_t number) {
      const ScopeGuard names = detail::enter_cell(output, "cell_" + std::to_string(number), at);
      std::tie(output, its) = cell(output, its, At{.where = at.where});
    };
    (one(std::get<I>(cells_), std::get<I>(state), I), ...);
  }

  std::tuple<Cells...> cells_;
};

struct DropoutCellOptions {
  float input_keep_prob = 1;
  float output_keep_prob = 1;
  Training training{true};
};

/// A cell with dropout on its inputs and outputs, not on its state (Zaremba et al. 2014, arXiv:1409.2329).
template <class Cell>
class DropoutCell {
 public:
  template <class T>
  using State = typename Cell::template State<T>;

  explicit DropoutCell(Cell cell, DropoutCellOptions options = {}) : cell_(std::move(cell)), options_(options) {}

  template <AllowedFor<Conv2D> T>
  std::tuple<Output<T>, State<T>> operator()(const Output<T>& x, const State<T>& state, const At& at = {}) const {
    const auto drop = [&](const Output<T>& of, float keep) {
      return keep == 1.0f ? of : dropout(of, keep, options_.training, {}, At{.where = at.where});
    };
    auto [output, next] = cell_(drop(x, options_.input_keep_prob), state, at);
    return {drop(output, options_.output_keep_prob), next};
  }
  template <AllowedFor<Conv2D> T>
  State<T> zero_state(const Output<T>& x, int axis = 0, const At& at = {}) const {
    return cell_.zero_state(x, axis, at);
  }

 private:
  Cell cell_;
  DropoutCellOptions options_;
};

struct ProjectionCellOptions {
  std::int64_t inputs = 0;   ///< columns that the cell gets; 0: the input as it is
  std::int64_t outputs = 0;  ///< columns that the whole gives; 0: the cell's output as it is
  Initializer kernel_initializer = init::glorot_uniform();
  Initializer bias_initializer = init::zeros();
};

/// A cell with a linear layer before it, behind it or both, as TensorFlow's InputProjectionWrapper and
/// OutputProjectionWrapper. The state is the cell's own. The variables are "input_projection/kernel" and so on, beside
/// the cell's.
///
/// Errors, of a call: those of `Dense` and of the cell.
template <class Cell>
class ProjectionCell {
 public:
  template <class T>
  using State = typename Cell::template State<T>;

  explicit ProjectionCell(Cell cell, const ProjectionCellOptions& options)
      : cell_(std::move(cell)),
        before_(layer(options, options.inputs, "input_projection")),
        behind_(layer(options, options.outputs, "output_projection")) {}

  template <AllowedFor<Conv2D> T>
  std::tuple<Output<T>, State<T>> operator()(const Output<T>& x, const State<T>& state, const At& at = {}) const {
    auto [output, next] = cell_(before_ ? (*before_)(x, At{.where = at.where}) : x, state, at);
    return {behind_ ? (*behind_)(output, At{.where = at.where}) : output, next};
  }
  template <AllowedFor<Conv2D> T>
  State<T> zero_state(const Output<T>& x, int axis = 0, const At& at = {}) const {
    return cell_.zero_state(x, axis, at);
  }

 private:
  static std::optional<Dense> layer(const ProjectionCellOptions& options, std::int64_t units, std::string_view name) {
    if (units == 0) return std::nullopt;
    return Dense(
        units,
        {.kernel_initializer = options.kernel_initializer, .bias_initializer = options.bias_initializer, .name = name});
  }

  Cell cell_;
  std::optional<Dense> before_, behind_;
};

/// A cell whose input is added to its output (He et al. 2015, arXiv:1512.03385), as TensorFlow's ResidualWrapper.
///
/// Errors, of a call: InvalidArgument unless the output has the shape of the input.
template <class Cell>
class ResidualCell {
 public:
  template <class T>
  using State = typename Cell::template State<T>;

  explicit ResidualCell(Cell cell) : cell_(std::move(cell)) {}

  template <AllowedFor<Conv2D> T>
  std::tuple<Output<T>, State<T>> operator()(const Output<T>& x, const State<T>& state, const At& at = {}) const {
    auto [output, next] = cell_(x, state, at);
    return {add_n<T>({x, output}, At{.where = at.where}), next};
  }
  template <AllowedFor<Conv2D> T>
  State<T> zero_state(const Output<T>& x, int axis = 0, const At& at = {}) const {
    return cell_.zero_state(x, axis, at);
  }

 private:
  Cell cell_;
};

/// A cell whose inputs are numbers of rows of a table [rows, width], int32 or int64 [batch], as TensorFlow's
/// EmbeddingWrapper. The state is the cell's own. The variable is "embedding/table" beside the cell's.
///
/// ```cpp
/// df::EmbeddingCell cell(df::LstmCell(64), letters, 16);
/// auto [output, next] = cell(ids, cell.zero_state(ids));
/// ```
/// Errors, of a call: those of `Embedding` and of the cell.
template <class Cell, class T = float>
class EmbeddingCell {
 public:
  template <class U>
  using State = typename Cell::template State<U>;

  EmbeddingCell(Cell cell, std::int64_t rows, std::int64_t width, EmbeddingOptions options = {})
      : cell_(std::move(cell)), embedding_(rows, width, std::move(options)) {}

  template <AllowedForParam<Gather, 1> Index>
  std::tuple<Output<T>, State<T>> operator()(const Output<Index>& ids, const State<T>& state, const At& at = {}) const {
    return cell_(embedding_(ids, At{.where = at.where}), state, at);
  }
  template <AllowedForParam<Gather, 1> Index>
  State<T> zero_state(const Output<Index>& ids, int axis = 0, const At& at = {}) const {
    return cell_.zero_state(embedding_(ids, At{.where = at.where}), axis, at);
  }

 private:
  Cell cell_;
  Embedding<T> embedding_;
};

}  // namespace dflow
