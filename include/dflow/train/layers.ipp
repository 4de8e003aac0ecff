#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/math/reduce.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/activation.hpp>
#include <dflow/ops/nn/batch_norm.hpp>
#include <dflow/ops/nn/bias.hpp>
#include <dflow/ops/random/random.hpp>
#include <dflow/train/layers.hpp>

#include <string>
#include <utility>
#include <vector>

namespace dflow {

DFLOW_INLINE AnyOutput Training::as_number(GraphStore& graph, DType dtype) const {
  if (is_edge()) return detail::cast_to(edge_, dtype);
  return init::constant(is_training_ ? 1 : 0)(graph, dtype, Shape{});
}

namespace detail {

[[noreturn]] DFLOW_INLINE void reject_layer(std::string_view layer, const std::string& message, const At& at) {
  throw Error(invalid_argument(str_cat(layer, ": ", message)).with_location(at.where));
}

/// The last dimension of a layer's input, which sizes its variables.
DFLOW_INLINE std::int64_t known_channels(const AnyOutput& x, int min_rank, int max_rank_allowed, std::string_view layer,
                                         const At& at) {
  if (!x.is_valid()) reject_layer(layer, "the input is an empty Output", at);
  const PartialShape& shape = x.shape();
  if (!shape.has_rank() || shape.rank() < min_rank || shape.rank() > max_rank_allowed ||
      shape.dim(shape.rank() - 1) == dynamic) {
    reject_layer(layer,
                 str_cat("the input must have rank ", min_rank, min_rank == max_rank_allowed ? "" : " or more",
                         " and a known last dimension, its shape is ", shape.to_string()),
                 at);
  }
  return shape.dim(shape.rank() - 1);
}

DFLOW_INLINE void require_positive(std::int64_t value, std::string_view what, std::string_view layer, const At& at) {
  if (value < 1) reject_layer(layer, str_cat(what, " must be positive, is ", value), at);
}

/// Inside, everything is named after the layer.
DFLOW_INLINE ScopeGuard enter_layer(GraphStore& graph, std::string_view name, const At& at) {
  return enter_name_scope(graph, at.name.empty() ? name : at.name, at.where);
}

DFLOW_INLINE AnyOutput activate(const AnyOutput& x, Activation activation) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return build<Relu>({x});
    case Activation::relu6:
      return build<Relu6>({x});
    case Activation::elu:
      return build<Elu>({x});
    case Activation::softplus:
      return build<Softplus>({x});
    case Activation::tanh:
      return build<Tanh>({x});
    case Activation::sigmoid:
      return build<Sigmoid>({x});
  }
  throw Error(invalid_argument("no such activation"));
}

DFLOW_INLINE AnyVariable layer_variable(GraphStore& graph, std::string_view name, DType dtype, const Shape& shape,
                                        const Initializer& initializer, bool trainable, const At& at) {
  if (!initializer) reject_layer(name, "the initializer is empty", at);
  AnyOutput initial;
  {
    const ScopeGuard scope = enter_name_scope(graph, str_cat(name, "_init"));
    initial = initializer(graph, dtype, shape);
  }
  return AnyVariable::make(graph, initial, {.name = name, .trainable = trainable}, at);
}

DFLOW_INLINE AnyOutput add_bias(const AnyOutput& x, std::int64_t channels, const At& at) {
  const AnyVariable bias = layer_variable(*x.graph(), "bias", x.dtype(), {channels}, init::zeros(), true, at);
  return build<BiasAdd>({x, bias.read_edge()});
}

DFLOW_INLINE AnyOutput any_dense(const AnyOutput& x, std::int64_t units, const DenseOptions& options, const At& at) {
  const std::int64_t inputs = known_channels(x, 2, 2, options.name, at);
  require_positive(units, "units", options.name, at);
  GraphStore& graph = *x.graph();
  const ScopeGuard place = enter_place(graph, at.where);
  const ScopeGuard scope = enter_layer(graph, options.name, at);
  const AnyVariable kernel =
      layer_variable(graph, "kernel", x.dtype(), {inputs, units}, options.kernel_initializer, true, at);
  AnyOutput y = build<MatMul>({x, kernel.read_edge()});
  if (options.use_bias) y = add_bias(y, units, at);
  return activate(y, options.activation);
}

DFLOW_INLINE AnyOutput any_conv2d_layer(const AnyOutput& x, std::int64_t filters, std::int64_t window,
                                        const Conv2DOptions& options, const At& at) {
  const std::int64_t channels = known_channels(x, 4, 4, options.name, at);
  require_positive(filters, "filters", options.name, at);
  require_positive(window, "the window", options.name, at);
  GraphStore& graph = *x.graph();
  const ScopeGuard place = enter_place(graph, at.where);
  const ScopeGuard scope = enter_layer(graph, options.name, at);
  const AnyVariable kernel = layer_variable(graph, "kernel", x.dtype(), {window, window, channels, filters},
                                            options.kernel_initializer, true, at);
  AnyOutput y = build<Conv2D>({x, kernel.read_edge()},
                              {.strides = {1, options.stride, options.stride, 1}, .padding = options.padding});
  if (options.use_bias) y = add_bias(y, filters, at);
  return activate(y, options.activation);
}

DFLOW_INLINE Pool2DAttrs pool_attrs(std::int64_t window, std::int64_t stride, Padding padding) {
  return {.ksize = {1, window, window, 1}, .strides = {1, stride, stride, 1}, .padding = padding};
}

DFLOW_INLINE AnyOutput any_batch_normalization(const AnyOutput& x, const BatchNormalizationOptions& options,
                                               const At& at) {
  const std::int64_t channels = known_channels(x, 2, max_rank, options.name, at);
  GraphStore& graph = *x.graph();
  const DType dtype = x.dtype();
  const ScopeGuard place = enter_place(graph, at.where);
  const ScopeGuard scope = enter_layer(graph, options.name, at);
  const auto variable = [&](std::string_view name, const Initializer& initializer, bool trainable) {
    return layer_variable(graph, name, dtype, {channels}, initializer, trainable, at);
  };
  const AnyVariable gamma = variable("gamma", init::ones(), true), beta = variable("beta", init::zeros(), true);
  const AnyVariable moving_mean = variable("moving_mean", init::zeros(), false);
  const AnyVariable moving_variance = variable("moving_variance", init::ones(), false);

  std::vector<std::int32_t> all_but_last;
  for (int axis = 0; axis + 1 < x.shape().rank(); ++axis) all_but_last.push_back(axis);
  const AnyOutput axes = any_constant(graph,
                                      Tensor<std::int32_t>({static_cast<std::int64_t>(all_but_last.size())},
                                                           std::span<const std::int32_t>(all_but_last)),
                                      {});
  const auto mean_of = [&](const AnyOutput& values) -> Expr { return AnyOutput(build<Mean>({values, axes})); };

  const auto move = [&](const AnyVariable& average, const Expr& value) {
    Expr step = (Expr(average.read_edge()) - value) * (1.0 - options.momentum);
    if (options.training.is_edge()) step = step * Expr(options.training.as_number(graph, dtype));
    graph.add_to_collection("update_ops", average.assign_sub(step).node_id());
  };
  if (options.training.is_always() && x.shape().rank() == 4 && dtype != DType::float16 && dtype != DType::bfloat16) {
    const BuiltNode fused = any_fused_batch_norm(x, gamma.read_edge(), beta.read_edge(), {}, {},
                                                 {.epsilon = options.epsilon}, {});
    move(moving_mean, fused.output(1));
    move(moving_variance, fused.output(2));
    return fused;
  }
  Expr mean = moving_mean.read_edge(), variance = moving_variance.read_edge();
  if (!options.training.is_never()) {
    const Expr batch_mean = mean_of(x);
    const Expr batch_variance = mean_of(build<SquaredDifference>({x, batch_mean}));
    move(moving_mean, batch_mean);
    move(moving_variance, batch_variance);
    const Expr training = options.training.as_number(graph, dtype);
    mean = options.training.is_always() ? batch_mean : mean + training * (batch_mean - mean);
    variance = options.training.is_always() ? batch_variance : variance + training * (batch_variance - variance);
  }
  const Expr scale = Expr(gamma.read_edge()) * Expr(AnyOutput(build<Rsqrt>({variance + options.epsilon})));
  return Expr(x) * scale + (Expr(beta.read_edge()) - mean * scale);
}

DFLOW_INLINE AnyOutput any_switched_dropout(const AnyOutput& x, float keep_prob, const Training& training,
                                            const DropoutOptions& options, const At& at) {
  if (training.is_always()) return any_dropout(x, static_cast<double>(keep_prob), options, at);
  if (!x.is_valid()) reject_layer("dropout", "the input is an empty Output", at);
  if (!(keep_prob > 0 && keep_prob <= 1)) {
    reject_layer("dropout", str_cat("the probability to keep must be in (0, 1], is ", keep_prob), at);
  }
  if (training.is_never()) return x;
  const ScopeGuard place = enter_place(*x.graph(), at.where);
  const Expr switched = training.as_number(*x.graph(), x.dtype());
  return dropout_by(x, 1.0 - (1.0 - static_cast<double>(keep_prob)) * switched, options, at);
}

DFLOW_INLINE AnyOutput any_flatten(const AnyOutput& x, const At& at) {
  std::int64_t size = 1;
  const PartialShape shape = x.is_valid() ? x.shape() : PartialShape::unknown();
  if (!shape.has_rank() || shape.rank() < 1)
    reject_layer("flatten", "the input must have a known rank of 1 or more", at);
  for (int i = 1; i < shape.rank(); ++i) {
    if (shape.dim(i) == dynamic)
      reject_layer("flatten", str_cat("a dimension of ", shape.to_string(), " is not known"), at);
    size *= shape.dim(i);
  }
  return any_reshape(x, IndexList{shape.dim(0), size}, at);
}

DFLOW_INLINE AnyVariable embedding_table(GraphStore& graph, DType dtype, std::int64_t rows, std::int64_t width,
                                         const EmbeddingOptions& options, const At& at) {
  require_positive(rows, "rows", options.name, at);
  require_positive(width, "width", options.name, at);
  const ScopeGuard place = enter_place(graph, at.where);
  const ScopeGuard scope = enter_layer(graph, options.name, at);
  return layer_variable(graph, "table", dtype, {rows, width}, options.initializer, true, at);
}

}  // namespace detail

}  // namespace dflow
