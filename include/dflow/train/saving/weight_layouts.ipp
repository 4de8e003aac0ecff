#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/permuted.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/train/saving/weight_layouts.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace dflow::train {

namespace detail {

[[noreturn]] void fail_layout(std::string_view wanted, std::span<const AnyTensor> tensors) {
  std::string shapes;
  for (const AnyTensor& tensor : tensors) shapes += str_cat(shapes.empty() ? "" : ", ", tensor.shape().to_string());
  throw_error(Status::invalid_argument(str_cat("the layout takes ", wanted, ", not ", shapes)));
}

const AnyTensor& only_tensor(std::span<const AnyTensor> tensors) {
  if (tensors.size() != 1) fail_layout("one tensor", tensors);
  return tensors.front();
}

/// The gates of a recurrent cell of others: blocks of columns, of which this cell has some, in this order.
struct GateLayout {
  std::size_t blocks = 1;
  std::vector<std::size_t> taken = {0};
  bool is_transposed = false;  ///< the blocks are blocks of rows
  std::size_t shifted = 0;     ///< the place among `taken` of a block of the bias that is made smaller
  double shift = 0;
};

/// Matrices of as many columns, one above the other.
AnyTensor stacked(std::span<const AnyTensor> matrices) {
  std::int64_t rows = 0;
  for (const AnyTensor& matrix : matrices) rows = checked_add(rows, matrix.dim(0));  // matrices without columns
  AnyTensor result(matrices.front().dtype(), Shape{rows, matrices.front().dim(1)});
  auto* to = static_cast<std::byte*>(result.raw_data());
  for (const AnyTensor& matrix : matrices) {
    if (matrix.bytes() != 0) std::memcpy(to, matrix.raw_data(), matrix.bytes());
    to += matrix.bytes();
  }
  return result;
}

/// The blocks of columns of a matrix that the cell has, side by side.
AnyTensor taken_blocks(const AnyTensor& matrix, const GateLayout& gates) {
  const auto rows = static_cast<std::size_t>(matrix.dim(0));
  const std::size_t bytes = matrix.bytes() == 0 ? 0 : matrix.bytes() / rows / gates.blocks;  // of a block of a row
  AnyTensor result(matrix.dtype(), Shape{matrix.dim(0), matrix.dim(1) / static_cast<std::int64_t>(gates.blocks) *
                                                            static_cast<std::int64_t>(gates.taken.size())});
  const auto* from = static_cast<const std::byte*>(matrix.raw_data());
  auto* to = static_cast<std::byte*>(result.raw_data());
  for (std::size_t row = 0; bytes != 0 && row < rows; ++row, from += gates.blocks * bytes) {
    for (const std::size_t block : gates.taken) {
      std::memcpy(to, from + block * bytes, bytes);
      to += bytes;
    }
  }
  return result;
}

/// The sum of vectors, without the gates' shift. `sum` has elements of its own.
void add_up(AnyTensor& sum, std::span<const AnyTensor> more, const GateLayout& gates) {
  visit_dtype<FloatTypes>(sum.dtype(), [&]<class T>() {
    const std::span<T> elements = sum.span<T>();
    const std::size_t block = elements.size() / gates.taken.size();
    for (std::size_t i = 0; i < elements.size(); ++i) {
      double value = static_cast<double>(elements[i]);
      for (const AnyTensor& each : more) value += static_cast<double>(each.span<T>()[i]);
      elements[i] = static_cast<T>(i / block == gates.shifted ? value - gates.shift : value);
    }
  });
}

AnyTensor laid_out_gates(const GateLayout& gates, std::span<const AnyTensor> tensors) {
  const auto fail = [&] {
    fail_layout(str_cat("matrices of as many columns in ", gates.blocks, " blocks, or vectors of the same length"),
                tensors);
  };
  if (tensors.empty() || !is_floating(tensors.front().dtype())) fail();
  std::vector<AnyTensor> matrices;
  for (const AnyTensor& tensor : tensors) {
    if (tensor.rank() != tensors.front().rank() || tensor.dtype() != tensors.front().dtype()) fail();
    if (tensor.rank() == 1) {
      matrices.push_back(tensor.reshaped(Shape{1, tensor.dim(0)}));
    } else if (tensor.rank() == 2) {
      matrices.push_back(gates.is_transposed ? permuted(tensor, std::array{1, 0}) : tensor);
    } else {
      fail();
    }
    const std::int64_t columns = matrices.back().dim(1);
    if (columns != matrices.front().dim(1) || columns % static_cast<std::int64_t>(gates.blocks) != 0) fail();
  }
  if (tensors.front().rank() == 2) return taken_blocks(stacked(matrices), gates);
  for (AnyTensor& row : matrices) row = taken_blocks(row, gates);
  add_up(matrices.front(), std::span(matrices).subspan(1), gates);
  return matrices.front().reshaped(Shape{matrices.front().dim(1)});
}

WeightLayout gate_layout(GateLayout gates) {
  return [gates = std::move(gates)](std::span<const AnyTensor> tensors) { return laid_out_gates(gates, tensors); };
}

}  // namespace detail

namespace layout {

WeightLayout permuted(std::vector<int> axes) {
  return [axes = std::move(axes)](std::span<const AnyTensor> tensors) {
    return dflow::permuted(detail::only_tensor(tensors), axes);
  };
}

WeightLayout transposed() { return permuted({1, 0}); }

WeightLayout pytorch_flattened(std::int64_t channels, std::int64_t rows, std::int64_t columns) {
  return [=](std::span<const AnyTensor> tensors) {
    const AnyTensor& weight = detail::only_tensor(tensors);
    const Shape image{channels, rows, columns};
    if (weight.rank() != 2 || weight.dim(1) != image.num_elements()) {
      detail::fail_layout(str_cat("[units, ", image.num_elements(), "]"), tensors);
    }
    const AnyTensor seen = weight.reshaped(Shape{weight.dim(0), channels, rows, columns});
    const AnyTensor moved = dflow::permuted(seen, std::array{2, 3, 1, 0});
    return moved.reshaped(Shape{weight.dim(1), weight.dim(0)});
  };
}

WeightLayout pytorch_conv2d() { return permuted({2, 3, 1, 0}); }

// The gates of PyTorch's LSTM are i, f, g, o, those of Keras's i, f, c, o, and those of LstmCell i, j, f, o, where j is
// g and c. Those of Keras's GRU are z, r, h, and those of GruCell r, u, where u is z, and the candidate h.
WeightLayout pytorch_rnn() { return detail::gate_layout({.is_transposed = true}); }
WeightLayout pytorch_lstm(double forget_bias) {
  return detail::gate_layout(
      {.blocks = 4, .taken = {0, 2, 1, 3}, .is_transposed = true, .shifted = 2, .shift = forget_bias});
}
WeightLayout keras_rnn() { return detail::gate_layout({}); }
WeightLayout keras_lstm(double forget_bias) {
  return detail::gate_layout({.blocks = 4, .taken = {0, 2, 1, 3}, .shifted = 2, .shift = forget_bias});
}
WeightLayout keras_gru_gates() { return detail::gate_layout({.blocks = 3, .taken = {1, 0}}); }
WeightLayout keras_gru_candidate() { return detail::gate_layout({.blocks = 3, .taken = {2}}); }

}  // namespace layout

}  // namespace dflow::train
