#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/activation.hpp>
#include <dflow/ops/nn/bias.hpp>
#include <dflow/train/layers.hpp>
#include <dflow/train/variables/layer_builder.hpp>

#include <array>
#include <cstdint>
#include <span>
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

std::vector<std::int64_t> over_images(RowsColumns numbers) { return {1, numbers.rows, numbers.columns, 1}; }

void require_positive(RowsColumns window, std::string_view layer, const At& at) {
  require_positive(window.rows, "the window", layer, at);
  require_positive(window.columns, "the window", layer, at);
}

/// activation(x + bias).
template <class Options>
AnyOutput biased_and_activated(const AnyOutput& x, LayerBuilder& layer, const Options& options) {
  const AnyOutput sum = options.use_bias ? AnyOutput(build<BiasAdd>({x, layer.value("bias")})) : x;
  return activate(sum, options.activation);
}

/// The end of a call.
AnyOutput finish_layer(const AnyOutput& y, LayerBuilder& layer) {
  const AnyOutput result = layer.result(y);
  layer.commit();
  return result;
}

/// The rows y [all rows, units] of a layer in the place of x's rows [...rows, inputs].
AnyOutput in_rows_of(const AnyOutput& y, const AnyOutput& x, std::int64_t units) {
  const PartialShape shape = x.shape().with_dim(x.shape().rank() - 1, units);
  std::int64_t open = 0, empty = 0;
  for (const std::int64_t dim : shape.dims()) open += dim == dynamic, empty += dim == 0;
  // A -1 beside a 0 would not say which rows there are.
  if (open == 0 || (open == 1 && empty == 0)) return dflow::detail::any_reshape(y, shape.dims(), {});
  const AnyOutput rows = dflow::detail::any_slice(shape_of(x), 0, shape.rank() - 1, {});
  const AnyOutput columns = dflow::detail::int32_constant(*x.graph(), std::span<const std::int64_t>(&units, 1));
  const AnyOutput dims = dflow::detail::any_concat(0, std::array{rows, columns});
  return build<EnsureShape>({dflow::detail::any_reshape(y, dims.as<std::int32_t>(), {})}, {.shape = shape});
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
  const std::int64_t inputs = detail::known_channels(x, 2, max_rank, name(), at);
  detail::require_positive(units_, "units", name(), at);
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) detail::make_kernel_and_bias(layer, layer.variable_dtype(), {inputs, units_}, options_);
  const bool is_matrix = x.shape().rank() == 2;
  const AnyOutput rows = is_matrix ? layer.input(x) : dflow::detail::any_reshape(layer.input(x), {-1, inputs}, {});
  AnyOutput y = build<MatMul>({rows, layer.value("kernel")});
  y = detail::biased_and_activated(y, layer, options_);
  return detail::finish_layer(is_matrix ? y : detail::in_rows_of(y, x, units_), layer);
}

Convolution2D::Convolution2D(std::int64_t filters, RowsColumns window, Conv2DOptions options)
    : Layer(options.name), filters_(filters), window_(window), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput Convolution2D::call(const AnyOutput& x, const At& at) const {
  const std::int64_t channels = detail::known_channels(x, 4, 4, name(), at);
  detail::require_positive(filters_, "filters", name(), at);
  detail::require_positive(window_, name(), at);
  detail::require_positive(options_.groups, "groups", name(), at);
  if (channels % options_.groups != 0) {
    detail::reject_layer(name(), str_cat(options_.groups, " groups do not divide ", channels, " channels"), at);
  }
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) {
    const Shape kernel{window_.rows, window_.columns, channels / options_.groups, filters_};
    detail::make_kernel_and_bias(layer, layer.variable_dtype(), kernel, options_);
  }
  // The op would take more channels for more groups.
  const std::int64_t expected = layer.variable("kernel").shape()[2] * options_.groups;
  if (channels != expected) {
    detail::reject_layer(name(), str_cat("the input has ", channels, " channels, the kernel is for ", expected), at);
  }
  const AnyOutput y =
      build<Conv2D>({layer.input(x), layer.value("kernel")}, {.strides = detail::over_images(options_.stride),
                                                              .padding = options_.padding,
                                                              .dilations = detail::over_images(options_.dilation)});
  return detail::finish_layer(detail::biased_and_activated(y, layer, options_), layer);
}

detail::AnyEmbedding::AnyEmbedding(DType dtype, std::int64_t rows, std::int64_t width, EmbeddingOptions options)
    : Layer(options.name), dtype_(dtype), rows_(rows), width_(width), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput detail::AnyEmbedding::call(const AnyOutput& ids, const At& at) const {
  if (!ids.is_valid()) reject_layer(name(), "the input is an empty Output", at);
  require_positive(rows_, "rows", name(), at);
  require_positive(width_, "width", name(), at);
  const Composite place(*ids.graph(), at.where);
  LayerBuilder layer(*state_, *ids.graph(), dtype_, at);
  const ScopeGuard scope = enter_layer(*ids.graph(), *state_, at);
  if (layer.is_first_call()) {
    layer.make("table", dtype_, {rows_, width_}, options_.initializer, options_.regularizer);
  }
  const AnyOutput y = dflow::detail::any_rows_of(layer.variable("table").read_edge(), ids, {.where = at.where});
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
  const Composite place(*x.graph(), at.where);
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
