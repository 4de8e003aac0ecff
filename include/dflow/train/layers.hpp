#pragma once

#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/nn/conv2d.hpp>
#include <dflow/ops/nn/dropout.hpp>
#include <dflow/ops/nn/pool2d.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/initializers.hpp>

#include <cstdint>
#include <string_view>

namespace dflow {

// Layers: functions that make their variables as they build. Variables and nodes of a layer are named "<name>/...",
// made unique: "dense/kernel", "dense_1/kernel". The name is that of `At`, or else that of the layer's options.

enum class Activation : std::uint8_t { none, relu, relu6, elu, softplus, tanh, sigmoid };

/// Whether a layer works as in training: known now, or an edge that each step is fed.
///
/// Thread safety: a value type.
class Training {
 public:
  explicit Training(bool is_training) : is_training_(is_training) {}
  Training(const Output<bool>& edge) : edge_(edge) {}  // NOLINT(google-explicit-constructor)

  bool is_edge() const noexcept { return edge_.is_valid(); }
  bool is_always() const noexcept { return !is_edge() && is_training_; }
  bool is_never() const noexcept { return !is_edge() && !is_training_; }
  /// 1 in training, else 0, as a scalar of that element type.
  AnyOutput as_number(GraphStore& graph, DType dtype) const;

 private:
  bool is_training_ = false;
  AnyOutput edge_;
};

struct DenseOptions {
  Activation activation = Activation::none;
  bool use_bias = true;
  Initializer kernel_initializer = init::glorot_uniform();
  std::string_view name = "dense";
};

struct Conv2DOptions {
  Activation activation = Activation::none;
  bool use_bias = true;
  std::int64_t stride = 1;
  Padding padding = Padding::same;
  Initializer kernel_initializer = init::glorot_uniform();
  std::string_view name = "conv2d";
};

struct BatchNormalizationOptions {
  Training training = Training(true);
  double momentum = 0.99;  ///< of the moving averages
  double epsilon = 1e-3;
  std::string_view name = "batch_normalization";
};

struct EmbeddingOptions {
  Initializer initializer = init::uniform(-0.05, 0.05);
  std::string_view name = "embedding";
};

namespace detail {
AnyOutput any_dense(const AnyOutput& x, std::int64_t units, const DenseOptions& options, const At& at);
AnyOutput any_conv2d_layer(const AnyOutput& x, std::int64_t filters, std::int64_t window, const Conv2DOptions& options,
                           const At& at);
AnyOutput any_batch_normalization(const AnyOutput& x, const BatchNormalizationOptions& options, const At& at);
AnyOutput any_switched_dropout(const AnyOutput& x, float keep_prob, const Training& training,
                               const DropoutOptions& options, const At& at);
AnyOutput any_flatten(const AnyOutput& x, const At& at);
AnyVariable layer_variable(GraphStore& graph, std::string_view name, DType dtype, const Shape& shape,
                           const Initializer& initializer, bool trainable, const At& at);
AnyVariable embedding_table(GraphStore& graph, DType dtype, std::int64_t rows, std::int64_t width,
                            const EmbeddingOptions& options, const At& at);
Pool2DAttrs pool_attrs(std::int64_t window, std::int64_t stride, Padding padding);
}  // namespace detail

/// activation(x kernel + bias): x [batch, inputs] gives [batch, units], with variables "kernel" [inputs, units] and
/// "bias" [units].
///
/// ```cpp
/// auto hidden = df::dense(images, 512, {.activation = df::Activation::relu});
/// ```
/// Errors: InvalidArgument unless x is a matrix whose number of columns is known, and units positive.
template <AllowedFor<Conv2D> T>
Output<T> dense(const Output<T>& x, std::int64_t units, const DenseOptions& options = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_dense(x, units, options, at));
}

/// activation(convolution of x with `filters` filters of window x window, + bias): x [batch, rows, columns, channels]
/// gives [batch, out_rows, out_columns, filters], with variables "kernel" [window, window, channels, filters] and
/// "bias" [filters].
///
/// Errors: InvalidArgument unless x has rank 4 and a known number of channels, and all numbers are positive.
template <AllowedFor<Conv2D> T>
Output<T> conv2d(const Output<T>& x, std::int64_t filters, std::int64_t window, const Conv2DOptions& options = {},
                 const At& at = {}) {
  return Output<T>::unchecked(detail::any_conv2d_layer(x, filters, window, options, at));
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

/// gamma (x - mean) / sqrt(variance + epsilon) + beta over all dimensions but the last (Ioffe and Szegedy 2015,
/// arXiv:1502.03167): by the batch's moments in training, by moving averages of them else. The operations that move the
/// averages are in the graph's collection "update_ops":
///
/// ```cpp
/// auto after = graph.control_dependencies(graph.collection("update_ops"));
/// auto train = df::train::Adam(1e-3f).minimize(loss);
/// ```
/// Errors: InvalidArgument unless x has rank 2 or more and its last dimension is known.
template <AllowedFor<Conv2D> T>
Output<T> batch_normalization(const Output<T>& x, const BatchNormalizationOptions& options = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_batch_normalization(x, options, at));
}

/// `dropout` in training; x itself else.
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

/// [batch, ...] to [batch, product of the others].
///
/// Errors: InvalidArgument unless all dimensions but the first are known.
template <AllowedFor<Conv2D> T> Output<T> flatten(const Output<T>& x, const At& at = {}) {
  return Output<T>::unchecked(detail::any_flatten(x, at));
}

/// Row ids[i] of a trained table for each i: ids int32 or int64 [n...] gives [n..., width]. Its gradient is sparse.
template <AllowedFor<Conv2D> T, AllowedForParam<Gather, 1> Index>
Output<T> embedding(const Output<Index>& ids, std::int64_t rows, std::int64_t width,
                    const EmbeddingOptions& options = {}, const At& at = {}) {
  const AnyVariable table = detail::embedding_table(*ids.graph(), dtype_of<T>, rows, width, options, at);
  return embedding_lookup(Output<T>::unchecked(table.read_edge()), ids, at);
}

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/train/layers.ipp>
#endif
