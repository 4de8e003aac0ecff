#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/activation.hpp>
#include <dflow/ops/nn/bias.hpp>
#include <dflow/train/layers.hpp>
#include <dflow/train/variables/layer_builder.hpp>

#include <utility>

namespace dflow {

namespace detail {

AnyOutput activate(const AnyOutput& x, Activation activation) {
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
  throw_error(Status::invalid_argument("no such activation"));
}

/// activation(x + bias), the end of a call.
template <class Options>
AnyOutput finish_layer(const AnyOutput& x, LayerBuilder& layer, const Options& options) {
  const AnyOutput sum = options.use_bias ? AnyOutput(build<BiasAdd>({x, layer.value("bias")})) : x;
  const AnyOutput y = layer.result(activate(sum, options.activation));
  layer.commit();
  return y;
}

/// The kernel and bias of a layer's first call.
template <class Options>
void make_kernel_and_bias(LayerBuilder& layer, DType dtype, const Shape& kernel, const Options& options) {
  layer.make("kernel", dtype, kernel, options.kernel_initializer, options.kernel_regularizer);
  if (options.use_bias) {
    layer.make("bias", dtype, {kernel.dim(kernel.rank() - 1)}, options.bias_initializer, options.bias_regularizer);
  }
}

}  // namespace detail

Dense::Dense(std::int64_t units, DenseOptions options)
    : Layer(options.name), units_(units), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput Dense::call(const AnyOutput& x, const At& at) const {
  const std::int64_t inputs = detail::known_channels(x, 2, 2, name(), at);
  detail::require_positive(units_, "units", name(), at);
  GraphStore& graph = *x.graph();
  const ScopeGuard place = enter_place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) detail::make_kernel_and_bias(layer, layer.variable_dtype(), {inputs, units_}, options_);
  return detail::finish_layer(build<MatMul>({layer.input(x), layer.value("kernel")}), layer, options_);
}

Convolution2D::Convolution2D(std::int64_t filters, std::int64_t window, Conv2DOptions options)
    : Layer(options.name), filters_(filters), window_(window), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput Convolution2D::call(const AnyOutput& x, const At& at) const {
  const std::int64_t channels = detail::known_channels(x, 4, 4, name(), at);
  detail::require_positive(filters_, "filters", name(), at);
  detail::require_positive(window_, "the window", name(), at);
  GraphStore& graph = *x.graph();
  const ScopeGuard place = enter_place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) {
    detail::make_kernel_and_bias(layer, layer.variable_dtype(), {window_, window_, channels, filters_}, options_);
  }
  const AnyOutput y = build<Conv2D>({layer.input(x), layer.value("kernel")},
                                    {.strides = {1, options_.stride, options_.stride, 1},
                                     .padding = options_.padding,
                                     .dilations = {1, options_.dilation, options_.dilation, 1}});
  return detail::finish_layer(y, layer, options_);
}

detail::AnyEmbedding::AnyEmbedding(DType dtype, std::int64_t rows, std::int64_t width, EmbeddingOptions options)
    : Layer(options.name), dtype_(dtype), rows_(rows), width_(width), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput detail::AnyEmbedding::call(const AnyOutput& ids, const At& at) const {
  if (!ids.is_valid()) reject_layer(name(), "the input is an empty Output", at);
  require_positive(rows_, "rows", name(), at);
  require_positive(width_, "width", name(), at);
  const ScopeGuard place = enter_place(*ids.graph(), at.where);
  LayerBuilder layer(*state_, *ids.graph(), dtype_, at);
  if (layer.is_first_call()) {
    const ScopeGuard scope = enter_layer(*ids.graph(), *state_, at);
    layer.make("table", dtype_, {rows_, width_}, options_.initializer, options_.regularizer);
  }
  const AnyOutput y = dflow::detail::any_rows_of(layer.variable("table").read_edge(), ids, at);
  layer.commit();
  return y;
}

namespace detail {

Pool2DAttrs pool_attrs(std::int64_t window, std::int64_t stride, Padding padding) {
  return {.ksize = {1, window, window, 1}, .strides = {1, stride, stride, 1}, .padding = padding};
}

AnyOutput any_switched_dropout(const AnyOutput& x, float keep_prob, const Training& training,
                               const DropoutOptions& options, const At& at) {
  if (training.is_always()) return any_dropout(x, static_cast<double>(keep_prob), options, at);
  if (!x.is_valid()) reject_layer("dropout", "the input is an empty Output", at);
  if (!(keep_prob > 0 && keep_prob <= 1)) {
    reject_layer("dropout", str_cat("the probability to keep must be in (0, 1], is ", keep_prob), at);
  }
  if (training.is_never()) return x;
  const ScopeGuard place = enter_place(*x.graph(), at.where);
  const Expr switched = cast_to(training.edge(), is_16_bit_float(x.dtype()) ? DType::float32 : x.dtype());
  return dropout_by(x, 1.0 - (1.0 - static_cast<double>(keep_prob)) * switched, options, at);
}

AnyOutput any_flatten(const AnyOutput& x, const At& at) {
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

}  // namespace detail

}  // namespace dflow
