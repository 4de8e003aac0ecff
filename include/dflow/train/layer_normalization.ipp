#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/train/layer_normalization.hpp>
#include <dflow/train/variables/layer_builder.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace dflow {

LayerNormalization::LayerNormalization(LayerNormalizationOptions options)
    : Layer(options.name), options_(std::move(options)) {
  options_.name = {};
}

AnyOutput LayerNormalization::call(const AnyOutput& x, const At& at) const {
  const std::int64_t channels = detail::known_channels(x, 2, max_rank, name(), at);
  GraphStore& graph = *x.graph();
  const DType parameter = x.dtype() == DType::float64 ? DType::float64 : DType::float32;
  const Composite place(graph, at.where);
  detail::LayerBuilder layer(*state_, graph, x.dtype(), at);
  const ScopeGuard scope = detail::enter_layer(graph, *state_, at);
  if (layer.is_first_call()) {
    layer.make("gamma", parameter, {channels}, init::ones(), options_.gamma_regularizer);
    layer.make("beta", parameter, {channels}, init::zeros(), options_.beta_regularizer);
  }
  const AnyOutput axis = detail::int32_constant(graph, std::vector<std::int64_t>{x.shape().rank() - 1});
  const auto mean_of_row = [&](const AnyOutput& values) -> Expr {
    return AnyOutput(build<Mean>({values, axis}, {.keep_dims = true}));
  };
  const Expr wide = detail::cast_to(x, parameter), mean = mean_of_row(wide);
  const Expr variance = mean_of_row(build<SquaredDifference>({wide, mean}));
  const Expr scale = AnyOutput(build<Rsqrt>({variance + options_.epsilon}));
  const Expr gamma_now = layer.variable("gamma").read_edge(), beta_now = layer.variable("beta").read_edge();
  const AnyOutput y = detail::cast_to((wide - mean) * scale * gamma_now + beta_now, x.dtype());
  layer.commit();
  return y;
}

}  // namespace dflow
