#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/ops/nn/convolutions.hpp>
#include <dflow/train/convolution_layers.hpp>
#include <dflow/train/layers.ipp>

#include <utility>

namespace dflow {

namespace detail {

/// Makes "bias" where the layer has one.
template <class Options>
void make_bias(LayerBuilder& layer, std::int64_t size, const Options& options) {
  if (!options.use_bias) return;
  layer.make("bias", layer.variable_dtype(), {size}, options.bias_initializer, options.bias_regularizer);
}

template <class Options>
Conv2DAttrs conv2d_attrs(const Options& options) {
  return {
      .strides = over_images(options.stride), .padding = options.padding, .dilations = over_images(options.dilation)};
}

}  // namespace detail

DepthwiseConvolution2D::DepthwiseConvolution2D(RowsColumns window, DepthwiseConv2DOptions options)
    : Layer(options.name), window_(window), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput DepthwiseConvolution2D::call(const AnyOutput& x, const At& at) const {
  const std::int64_t channels = detail::known_channels(x, 4, 4, name(), at);
  detail::require_positive(window_, name(), at);
  detail::require_positive(options_.multiplier, "the multiplier", name(), at);
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) {
    layer.make("kernel", layer.variable_dtype(), {window_.rows, window_.columns, channels, options_.multiplier},
               options_.kernel_initializer, options_.kernel_regularizer);
    detail::make_bias(layer, checked_mul(channels, options_.multiplier), options_);
  }
  const AnyOutput y =
      build<DepthwiseConv2dNative>({layer.input(x), layer.value("kernel")}, detail::conv2d_attrs(options_));
  return detail::finish_layer(detail::biased_and_activated(y, layer, options_), layer);
}

SeparableConvolution2D::SeparableConvolution2D(std::int64_t filters, RowsColumns window, SeparableConv2DOptions options)
    : Layer(options.name), filters_(filters), window_(window), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput SeparableConvolution2D::call(const AnyOutput& x, const At& at) const {
  const std::int64_t channels = detail::known_channels(x, 4, 4, name(), at);
  detail::require_positive(filters_, "filters", name(), at);
  detail::require_positive(window_, name(), at);
  detail::require_positive(options_.multiplier, "the multiplier", name(), at);
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) {
    const DType dtype = layer.variable_dtype();
    layer.make("depthwise_kernel", dtype, {window_.rows, window_.columns, channels, options_.multiplier},
               options_.depthwise_initializer, options_.depthwise_regularizer);
    layer.make("pointwise_kernel", dtype, {1, 1, checked_mul(channels, options_.multiplier), filters_},
               options_.pointwise_initializer, options_.pointwise_regularizer);
    detail::make_bias(layer, filters_, options_);
  }
  const AnyOutput y =
      detail::any_separable_conv2d({layer.input(x), layer.value("depthwise_kernel"), layer.value("pointwise_kernel")},
                                   detail::conv2d_attrs(options_), {});
  return detail::finish_layer(detail::biased_and_activated(y, layer, options_), layer);
}

TransposedConvolution2D::TransposedConvolution2D(std::int64_t filters, RowsColumns window,
                                                 Conv2DTransposeOptions options)
    : Layer(options.name), filters_(filters), window_(window), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput TransposedConvolution2D::call(const AnyOutput& x, const At& at) const {
  const std::int64_t channels = detail::known_channels(x, 4, 4, name(), at);
  detail::require_positive(filters_, "filters", name(), at);
  detail::require_positive(window_, name(), at);
  GraphStore& graph = *x.graph();
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) {
    layer.make("kernel", layer.variable_dtype(), {window_.rows, window_.columns, filters_, channels},
               options_.kernel_initializer, options_.kernel_regularizer);
    detail::make_bias(layer, filters_, options_);
  }
  const AnyOutput y =
      detail::any_conv2d_transpose({layer.input(x), layer.value("kernel")}, {}, detail::conv2d_attrs(options_), {});
  return detail::finish_layer(detail::biased_and_activated(y, layer, options_), layer);
}

}  // namespace dflow
