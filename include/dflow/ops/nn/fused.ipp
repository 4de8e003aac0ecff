#pragma once

#include <dflow/ops/nn/fused.hpp>

namespace dflow {

namespace detail {

/// Output 0 is `shape`, with as many channels as the bias, input 2, has elements.
void infer_with_bias(InferContext& context, PartialShape shape) {
  const int last = shape.rank() - 1;
  const std::int64_t channels = context.with_rank(2, 1)[0];
  if (shape[last] == dynamic) shape = shape.with_dim(last, channels);
  if (channels != dynamic && shape[last] != channels) {
    context.fail(str_cat("the bias has ", channels, " elements for ", shape[last], " channels"));
  }
  context.set_output(0, std::move(shape));
}

}  // namespace detail

void FusedMatMul::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<FusedMatMul>();
  detail::infer_with_bias(context, detail::infer_product(context, attrs.transpose_a, attrs.transpose_b));
}

void FusedConv2D::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<FusedConv2D>();
  detail::infer_with_bias(
      context, detail::infer_conv2d(context, attrs.convolution(), context.with_rank(0, 4), context.with_rank(1, 4)));
}

}  // namespace dflow
