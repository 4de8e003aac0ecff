#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/train/batch_normalization.hpp>
#include <dflow/train/variables/layer_builder.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// Mean and unbiased variance of a batch, [channels] each, and the plain variance that normalises the batch.
struct BatchMoments {
  Expr mean, variance, unbiased_variance;
};

/// The moments of x [batch, rows, columns, channels], in the parameters' type; they can be differentiated.
BatchMoments batch_moments(const AnyOutput& x, DType parameter) {
  GraphStore& graph = *x.graph();
  const AnyOutput axes = int32_constant(graph, std::vector<std::int64_t>{0, 1, 2});
  const AnyOutput wide = x.dtype() == parameter ? x : cast_to(x, parameter);
  const auto mean_of = [&](const AnyOutput& values) -> Expr { return AnyOutput(build<Mean>({values, axes})); };
  BatchMoments moments;
  moments.mean = mean_of(wide);
  moments.variance = mean_of(build<SquaredDifference>({wide, moments.mean}));
  // Counted in the parameters' type: a batch may have more elements than an int32 can say.
  const AnyOutput dims = cast_to(shape_of(x), parameter);
  const Expr elements = AnyOutput(build<Prod>({dims, int32_constant(graph, std::vector<std::int64_t>{0})}));
  const Expr count = elements / static_cast<double>(std::max<std::int64_t>(x.shape().dim(3), 1));
  const Expr others = AnyOutput(build<Maximum>({count - 1.0, scalar_like(count, 1.0)}));
  moments.unbiased_variance = moments.variance * (count / others);
  return moments;
}

/// x as images of one pixel, [elements per channel, 1, 1, channels]; x itself if it has rank 4.
AnyOutput as_images(const AnyOutput& x, std::int64_t channels) {
  if (x.shape().rank() == 4) return x;
  return any_reshape(x, IndexList{-1, 1, 1, channels}, {});
}

/// Whether the batch's moments count: the call trains and the batch has elements. No edge if both are known to be
/// true.
AnyOutput has_moments(const AnyOutput& x, const Training& training) {
  if (x.shape().num_elements().value_or(0) > 0) return training.edge();
  GraphStore& graph = *x.graph();
  const AnyOutput smallest = build<Min>({shape_of(x), int32_constant(graph, std::vector<std::int64_t>{0})});
  const AnyOutput has_elements = build<Greater>({smallest, int32_constant(graph, 0)});
  return training.is_edge() ? AnyOutput(build<LogicalAnd>({training.edge(), has_elements})) : has_elements;
}

/// y, made from `as_images(x)`, in x's shape.
AnyOutput in_shape_of(const AnyOutput& y, const AnyOutput& x) {
  if (x.shape().rank() == 4) return y;
  const std::span<const std::int64_t> dims = x.shape().dims();
  const bool has_zero = std::find(dims.begin(), dims.end(), 0) != dims.end();
  if (!has_zero && std::count(dims.begin(), dims.end(), dynamic) <= 1) return any_reshape(y, IndexList(dims), {});
  return build<Reshape>({y, shape_of(x)});
}

}  // namespace detail

BatchNormalization::BatchNormalization(BatchNormalizationOptions options)
    : Layer(options.name), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput BatchNormalization::call(const AnyOutput& x, const Training& training, const At& at) const {
  const std::int64_t channels = detail::known_channels(x, 2, max_rank, name(), at);
  GraphStore& graph = *x.graph();
  const DType parameter = x.dtype() == DType::float64 ? DType::float64 : DType::float32;
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) {
    layer.make("gamma", parameter, {channels}, init::ones(), options_.gamma_regularizer);
    layer.make("beta", parameter, {channels}, init::zeros(), options_.beta_regularizer);
    layer.make("moving_mean", parameter, {channels}, init::zeros(), {}, false);
    layer.make("moving_variance", parameter, {channels}, init::ones(), {}, false);
  }
  const AnyVariable moving_mean = layer.variable("moving_mean"), moving_variance = layer.variable("moving_variance");
  const AnyOutput gamma_now = layer.variable("gamma").read_edge(), beta_now = layer.variable("beta").read_edge();
  const Expr average = moving_mean.read_edge(), average_variance = moving_variance.read_edge();
  const AnyOutput has_moments = training.is_never() ? AnyOutput() : detail::has_moments(x, training);
  const auto move = [&](const AnyVariable& variable, const Expr& value) {
    Expr step = (Expr(variable.read_edge()) - value) * (1.0 - options_.momentum);
    if (has_moments.is_valid()) step = AnyOutput(build<Select>({has_moments, step, zeros_like(step)}));
    layer.list("update_ops", variable.assign_sub(step).node_id());
  };
  const auto finish = [&](const AnyOutput& normalized) {
    const AnyOutput y = detail::in_shape_of(normalized, x);
    layer.commit();
    return y;
  };

  const AnyOutput images = detail::as_images(x, channels);
  if (training.is_always()) {
    const BuiltNode fused =
        detail::any_fused_batch_norm(images, gamma_now, beta_now, {}, {}, {.epsilon = options_.epsilon}, {});
    move(moving_mean, fused.output(1));
    move(moving_variance, fused.output(2));
    return finish(fused);
  }
  Expr mean = average, variance = average_variance;
  if (training.is_edge()) {
    const detail::BatchMoments batch = detail::batch_moments(images, parameter);
    move(moving_mean, batch.mean);
    move(moving_variance, batch.unbiased_variance);
    mean = AnyOutput(build<Select>({has_moments, batch.mean, average}));
    variance = AnyOutput(build<Select>({has_moments, batch.variance, average_variance}));
  }
  const BuiltNode given = detail::any_fused_batch_norm(images, gamma_now, beta_now, mean, variance,
                                                       {.epsilon = options_.epsilon, .is_training = false}, {});
  return finish(given);
}

}  // namespace dflow
