#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/nn/bias.hpp>

namespace dflow {

void BiasAdd::infer(InferContext& context) {
  detail::require_nhwc(context, context.attrs<BiasAdd>().data_format);
  PartialShape x = context.with_rank_at_least(0, 2);
  const std::int64_t channels = context.with_rank(1, 1)[0];
  if (x.has_rank()) {
    const int last = x.rank() - 1;
    if (x[last] == dynamic) x = x.with_dim(last, channels);
    if (channels != dynamic && x[last] != channels) {
      context.fail(str_cat("the bias has ", channels, " elements for ", x[last], " channels"));
    }
  }
  context.set_output(0, std::move(x));
}

void BiasAdd::gradient(GradientContext& context) {
  context.set_dx(0, context.dy());
  context.set_dx(1, build<BiasAddGrad>({context.dy()}, context.attrs<BiasAdd>()));
}

void BiasAddGrad::infer(InferContext& context) {
  detail::require_nhwc(context, context.attrs<BiasAddGrad>().data_format);
  const PartialShape dy = context.with_rank_at_least(0, 2);
  context.set_output(0, {dy.has_rank() ? dy[dy.rank() - 1] : dynamic});
}

void BiasAddGrad::gradient(GradientContext& context) {
  context.set_dx(0, build<BiasAdd>({zeros_like(context.input(0)), context.dy()}, context.attrs<BiasAddGrad>()));
}

}  // namespace dflow
