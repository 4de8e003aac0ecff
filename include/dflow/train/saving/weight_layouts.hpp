#pragma once

#include <dflow/core/any_tensor.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace dflow::train {

/// Makes the value of a variable of tensors of another program, in which the elements lie in another order.
///
/// Thread safety: of the functions in `layout`: calls may run at the same time.
/// Errors: InvalidArgument, with the shapes, for tensors that it does not fit. Empty: the tensor as it is.
using WeightLayout = std::function<AnyTensor(std::span<const AnyTensor> tensors)>;

/// Layouts of PyTorch and Keras. Layers of Keras that are not here have dflow's layout.
namespace layout {

/// One tensor with its dimensions in another order: dimension i of the value is dimension axes[i] of the tensor, as by
/// numpy.transpose.
WeightLayout permuted(std::vector<int> axes);
/// The weight of PyTorch's Linear, [units, inputs], for `Dense`: [inputs, units].
WeightLayout transposed();
/// The weight of PyTorch's Linear behind a Flatten of images, [units, channels * rows * columns], for a `Dense` behind
/// `flatten`: [rows * columns * channels, units]. PyTorch's images are [channels, rows, columns] each, and dflow's
/// [rows, columns, channels]: `transposed` would have the right shape and give other results.
WeightLayout pytorch_flattened(std::int64_t channels, std::int64_t rows, std::int64_t columns);
/// The weight of PyTorch's Conv2d, [filters, inputs, rows, columns], for `Convolution2D`: [rows, columns, inputs,
/// filters]. The same for ConvTranspose2d, [inputs, filters, rows, columns], and `conv2d_transpose`.
WeightLayout pytorch_conv2d();

/// Recurrent cells. The kernel of a cell here is that of the inputs above that of the state, [inputs + units, ...]. The
/// same layout takes the tensors of the kernel and of the bias: two vectors are added up.
///
/// PyTorch's weight_ih_l0 [units, inputs] and weight_hh_l0 [units, units], or its two biases, for `BasicRnnCell`.
WeightLayout pytorch_rnn();
/// PyTorch's weight_ih_l0 [4 units, inputs] and weight_hh_l0 [4 units, units], or its two biases, for an `LstmCell`
/// with that `forget_bias`, which is subtracted because the cell adds it.
WeightLayout pytorch_lstm(double forget_bias = 1);
/// The kernel [inputs, units] and the recurrent_kernel [units, units] of Keras's SimpleRNN, or its bias, for
/// `BasicRnnCell`.
WeightLayout keras_rnn();
/// The kernel [inputs, 4 units] and the recurrent_kernel [units, 4 units] of Keras's LSTM, or its bias, for an
/// `LstmCell` with that `forget_bias`.
WeightLayout keras_lstm(double forget_bias = 1);
/// The kernel [inputs, 3 units] and the recurrent_kernel [units, 3 units] of Keras's GRU(reset_after=False), or its
/// bias, for the "gates/kernel" and "gates/bias", or the "candidate/kernel" and "candidate/bias", of a `GruCell`. A GRU
/// of PyTorch, and one of Keras with reset_after=True, computes another function than `GruCell`.
WeightLayout keras_gru_gates();
WeightLayout keras_gru_candidate();

}  // namespace layout

}  // namespace dflow::train
