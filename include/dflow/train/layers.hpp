#pragma once

#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/nn/conv2d.hpp>
#include <dflow/ops/nn/dropout.hpp>
#include <dflow/ops/nn/pool2d.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/batch_normalization.hpp>
#include <dflow/train/initializers.hpp>
#include <dflow/train/layer.hpp>
#include <dflow/train/regularizers.hpp>
#include <dflow/train/training.hpp>

#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

// Layers, as objects with variables that later calls share (`Layer`), and as functions that make a layer for one call.

enum class Activation : std::uint8_t { none, relu, relu6, elu, softplus, tanh, sigmoid };

struct DenseOptions {
  Activation activation = Activation::none;
  bool use_bias = true;
  Initializer kernel_initializer = init::glorot_uniform();
  Initializer bias_initializer = init::zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  std::string_view name = "dense";
};

/// Numbers for the rows and the columns of a window, a stride or a dilation: `{1, 7}`, or one number for both.
struct RowsColumns {
  template <std::integral I>
  constexpr RowsColumns(I both) : rows(static_cast<std::int64_t>(both)), columns(rows) {}
  constexpr RowsColumns(std::int64_t of_rows, std::int64_t of_columns) : rows(of_rows), columns(of_columns) {}

  std::int64_t rows, columns;
};

struct Conv2DOptions {
  Activation activation = Activation::none;
  bool use_bias = true;
  RowsColumns stride = 1;
  RowsColumns dilation = 1;
  std::int64_t groups = 1;  ///< runs of channels that see one another alone
  Padding padding = Padding::same;
  Initializer kernel_initializer = init::glorot_uniform();
  Initializer bias_initializer = init::zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  std::string_view name = "conv2d";
};

struct EmbeddingOptions {
  Initializer initializer = init::uniform(-0.05, 0.05);
  Regularizer regularizer = {};
  std::string_view name = "embedding";
};

namespace detail {
AnyOutput activate(const AnyOutput& x, Activation activation);
/// [1, rows, columns, 1], as the ops take it.
std::vector<std::int64_t> over_images(RowsColumns numbers);
AnyOutput any_switched_dropout(const AnyOutput& x, float keep_prob, const Training& training,
                               const DropoutOptions& options, const At& at);
AnyOutput any_flatten(const AnyOutput& x, const At& at);
Pool2DAttrs pool_attrs(std::int64_t window, std::int64_t stride, Padding padding);
}  // namespace detail

/// activation(x kernel + bias): x [...batch, inputs] of rank 2 or more gives [...batch, units]. The variables are
/// "kernel" [inputs, units] and "bias" [units], in x's element type unless the variable scope says otherwise
/// (`VariableScopeOptions::compute`).
/// ```cpp
/// df::Dense hidden(512, {.activation = df::Activation::relu, .kernel_regularizer = df::regularizer::l2(1e-4)});
/// auto y = hidden(images), again = hidden(other_images);   // the same variables
/// df::Variable<float> weights(hidden.kernel());
/// ```
/// Errors, of a call: InvalidArgument unless x has rank 2 or more and a known last dimension, and units is positive.
class Dense : public Layer {
 public:
  explicit Dense(std::int64_t units, DenseOptions options = {});
  Dense(const Dense&) = default;
  Dense& operator=(const Dense&) = default;

  template <AllowedFor<Conv2D> T>
  Output<T> operator()(const Output<T>& x, const At& at = {}) const {
    return Output<T>::unchecked(call(x, at));
  }

  AnyVariable kernel() const { return variable("kernel"); }
  /// Errors: NotFound without one.
  AnyVariable bias() const { return variable("bias"); }

 private:
  AnyOutput call(const AnyOutput& x, const At& at) const;

  std::int64_t units_;
  DenseOptions options_;
};

/// activation(convolution of x with `filters` filters of the window's size, + bias): x [batch, rows, columns, channels]
/// gives [batch, out_rows, out_columns, filters]. The variables are "kernel" [window rows, window columns, channels /
/// groups, filters] and "bias" [filters], in x's element type unless the variable scope says otherwise
/// (`VariableScopeOptions::compute`).
/// ```cpp
/// df::Convolution2D square(64, 3, {.stride = 2}), wide(64, {1, 7});
/// ```
/// Errors, of a call: InvalidArgument unless x has rank 4 and a known number of channels, all numbers are positive, and
/// groups divides the channels and the filters.
class Convolution2D : public Layer {
 public:
  Convolution2D(std::int64_t filters, RowsColumns window, Conv2DOptions options = {});
  Convolution2D(const Convolution2D&) = default;
  Convolution2D& operator=(const Convolution2D&) = default;

  template <AllowedFor<Conv2D> T>
  Output<T> operator()(const Output<T>& x, const At& at = {}) const {
    return Output<T>::unchecked(call(x, at));
  }

  AnyVariable kernel() const { return variable("kernel"); }
  /// Errors: NotFound without one.
  AnyVariable bias() const { return variable("bias"); }

 private:
  AnyOutput call(const AnyOutput& x, const At& at) const;

  std::int64_t filters_;
  RowsColumns window_;
  Conv2DOptions options_;
};

namespace detail {

class AnyEmbedding : public Layer {
 public:
  AnyEmbedding(DType dtype, std::int64_t rows, std::int64_t width, EmbeddingOptions options);
  AnyEmbedding(const AnyEmbedding&) = default;
  AnyEmbedding& operator=(const AnyEmbedding&) = default;

 protected:
  AnyOutput call(const AnyOutput& ids, const At& at) const;

 private:
  DType dtype_;
  std::int64_t rows_;
  std::int64_t width_;
  EmbeddingOptions options_;
};

}  // namespace detail

/// Row ids[i] of a trained table for each i: ids int32 or int64 [n...] gives [n..., width]. The variable is "table"
/// [rows, width]. Its gradient is sparse.
///
/// ```cpp
/// df::Embedding<float> words(10'000, 64);
/// auto vectors = words(ids);
/// auto logits = df::matmul(hidden, words.table(), {.transpose_b = true});   // tied weights
/// ```
/// Errors, of a call: InvalidArgument unless rows and width are positive; of a step: for an id outside [0, rows).
template <AllowedFor<Conv2D> T>
class Embedding : public detail::AnyEmbedding {
 public:
  Embedding(std::int64_t rows, std::int64_t width, EmbeddingOptions options = {})
      : AnyEmbedding(dtype_of<T>, rows, width, std::move(options)) {}

  template <AllowedForParam<Gather, 1> Index>
  Output<T> operator()(const Output<Index>& ids, const At& at = {}) const {
    return Output<T>::unchecked(call(ids, at));
  }

  Variable<T> table() const { return Variable<T>(variable("table")); }
};

/// A `Dense` layer for one call.
///
/// ```cpp
/// auto hidden = df::dense(images, 512, {.activation = df::Activation::relu});
/// ```
template <AllowedFor<Conv2D> T>
Output<T> dense(const Output<T>& x, std::int64_t units, const DenseOptions& options = {}, const At& at = {}) {
  return Dense(units, options)(x, at);
}

/// A `Convolution2D` layer for one call.
template <AllowedFor<Conv2D> T>
Output<T> conv2d(const Output<T>& x, std::int64_t filters, RowsColumns window, const Conv2DOptions& options = {},
                 const At& at = {}) {
  return Convolution2D(filters, window, options)(x, at);
}

/// An `Embedding` layer for one call.
template <AllowedFor<Conv2D> T, AllowedForParam<Gather, 1> Index>
Output<T> embedding(const Output<Index>& ids, std::int64_t rows, std::int64_t width,
                    const EmbeddingOptions& options = {}, const At& at = {}) {
  return Embedding<T>(rows, width, options)(ids, at);
}

/// The largest element of windows that lie side by side: x [batch, rows, columns, channels] gives
/// [batch, rows / window, columns / window, channels].
///
/// Errors: InvalidArgument unless x has rank 4 and window is positive.
template <AllowedFor<MaxPool> T>
Output<T> max_pool(const Output<T>& x, std::int64_t window, Padding padding = Padding::valid, const At& at = {}) {
  return max_pool(x, detail::pool_attrs(window, window, padding), at);
}
/// The same with the mean.
template <AllowedFor<AvgPool> T>
Output<T> avg_pool(const Output<T>& x, std::int64_t window, Padding padding = Padding::valid, const At& at = {}) {
  return avg_pool(x, detail::pool_attrs(window, window, padding), at);
}

/// `dropout` in training; otherwise x itself.
///
/// ```cpp
/// auto training = df::placeholder<bool>(graph, {});
/// auto thinned = df::dropout(hidden, 0.5f, df::Training(training));
/// ```
/// Errors: InvalidArgument unless 0 < keep_prob <= 1.
template <AllowedFor<Conv2D> T>
Output<T> dropout(const Output<T>& x, float keep_prob, const Training& training, const DropoutOptions& options = {},
                  const At& at = {}) {
  return Output<T>::unchecked(detail::any_switched_dropout(x, keep_prob, training, options, at));
}

/// [batch, ...] to [batch, product of the other dimensions].
///
/// Errors: InvalidArgument unless all dimensions but the first are known.
template <AllowedFor<Conv2D> T>
Output<T> flatten(const Output<T>& x, const At& at = {}) {
  return Output<T>::unchecked(detail::any_flatten(x, at));
}

}  // namespace dflow
