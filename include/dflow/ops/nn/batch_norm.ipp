#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/batch_norm.hpp>
#include <dflow/ops/reduction/reduce.hpp>

namespace dflow {

namespace detail {

/// The parameters' type must be float, or double where the elements are.
void require_parameter_type(const InferContext& context) {
  const DType wanted = context.type_arg(0) == DType::float64 ? DType::float64 : DType::float32;
  if (context.type_arg(1) == wanted) return;
  context.fail(str_cat("parameters of ", dtype_name(context.type_arg(0)), " images must be ", dtype_name(wanted),
                       ", got ", dtype_name(context.type_arg(1))));
}

/// `channels` and the length of the vector on input `i` as one; fails if they differ.
std::int64_t merge_channels(const InferContext& context, std::int64_t channels, int i) {
  const std::int64_t got = context.with_rank(i, 1)[0];
  if (got != dynamic && channels != dynamic && got != channels) {
    context.fail(str_cat("input ", i, " must have one element for each of ", channels, " channels, got ", got));
  }
  return channels == dynamic ? got : channels;
}

/// The algebra for the second order of batch normalisation. All values have the parameters' type; sums over batch,
/// rows and columns keep the summed dimensions as 1.
class BatchNormAlgebra {
 public:
  BatchNormAlgebra(GradientContext& context, DType parameter)
      : parameter_(parameter), axes_(int32_constant(context.graph(), std::vector<std::int64_t>{0, 1, 2}, {})) {}

  Expr wide(const Expr& x) const { return x.dtype() == parameter_ ? x : Expr(cast_to(x, parameter_)); }
  Expr like(const Expr& x, const Expr& input) const {
    return x.dtype() == input.dtype() ? x : Expr(cast_to(x, input.dtype()));
  }
  Expr mean(const Expr& x) const { return AnyOutput(build<Mean>({x, axes_}, {.keep_dims = true})); }
  Expr sum_to_channels(const Expr& x) const { return AnyOutput(build<Sum>({x, axes_})); }

 private:
  DType parameter_;
  AnyOutput axes_;
};

}  // namespace detail

void FusedBatchNorm::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<FusedBatchNorm>();
  detail::require_nhwc(context, attrs.data_format);
  detail::require_parameter_type(context);
  const PartialShape x = context.with_rank(0, 4);
  std::int64_t channels = x[3];
  for (int i = 1; i < (attrs.is_training ? 3 : 5); ++i) channels = detail::merge_channels(context, channels, i);
  context.set_output(0, x.with_dim(3, channels));
  for (int i = 1; i < 5; ++i) context.set_output(i, {channels});
}

void FusedBatchNormGrad::infer(InferContext& context) {
  detail::require_nhwc(context, context.attrs<FusedBatchNormGrad>().data_format);
  detail::require_parameter_type(context);
  const PartialShape x = context.merge(context.with_rank(0, 4), context.with_rank(1, 4));
  std::int64_t channels = x[3];
  for (int i = 2; i < 5; ++i) channels = detail::merge_channels(context, channels, i);
  context.set_output(0, x.with_dim(3, channels));
  context.set_output(1, {channels});
  context.set_output(2, {channels});
}

/// Statistics of the batch cannot be differentiated through. Given statistics are handed out as they are; nodes that
/// use them here, again in gradients, read the edges that they came on.
void FusedBatchNorm::gradient(GradientContext& context) {
  const Attrs& attrs = context.attrs<FusedBatchNorm>();
  for (int i = 1; attrs.is_training && i < 5; ++i) {
    if (context.has_dy(i))
      context.fail("batch normalisation cannot be differentiated through the statistics it returns");
  }
  const Expr mean = attrs.is_training ? context.output(3) : context.input(3);
  const Expr variance = attrs.is_training ? context.output(4) : context.input(4);
  const BuiltNode gradients =
      build<FusedBatchNormGrad>({context.dy(), context.input(0), context.input(1), mean, variance}, attrs);
  for (int i = 0; i < 3; ++i) context.set_dx(i, gradients.output(i));
  if (attrs.is_training) return;
  const Expr scale = context.input(1), dscale = gradients.output(1), doffset = gradients.output(2);
  const Expr factor = AnyOutput(build<Rsqrt>({variance + attrs.epsilon}));
  Expr dmean = -(doffset * scale * factor), dvariance = dscale * scale * factor * factor * -0.5;
  for (const int copy : {1, 3}) {
    if (context.has_dy(copy)) dmean = dmean + context.dy(copy);
    if (context.has_dy(copy + 1)) dvariance = dvariance + context.dy(copy + 1);
  }
  context.set_dx(3, dmean);
  context.set_dx(4, dvariance);
}

/// With c = x - mean, r = 1 / sqrt(variance + epsilon), h = c r and the projection P(v) = v - mean(v) - h mean(v h),
/// the node computes dx = scale r P(dy), dscale = sum(dy h), doffset = sum(dy). Gradients (a, b, c) by the three give
///   by dy:     scale r P(a) + b h + c
///   by scale:  sum(a r P(dy))
///   by x:      r P(g) - scale r^2 h mean(a P(dy)),  g = b dy - scale r (a mean(dy h) + dy mean(a h))
/// The last term is by the variance inside r; its derivative by x is 2 h / (n r). The gradient by x contains the effect
/// of x on the mean and variance of the batch. With given statistics P is the identity, the last term and the second
/// term of g are 0, and the statistics have gradients of their own:
///   by mean:      -r b sum(dy)
///   by variance:  -r^2 / 2 (scale r sum(a dy) + b sum(dy h))
void FusedBatchNormGrad::gradient(GradientContext& context) {
  const Attrs& attrs = context.attrs<FusedBatchNormGrad>();
  const Expr scale = context.input(2), mean = context.input(3), variance = context.input(4);
  const detail::BatchNormAlgebra in(context, scale.dtype());
  const Expr dy = in.wide(context.input(0)), x = in.wide(context.input(1));
  const Expr a = in.wide(context.dy(0)), b = context.dy(1), c = context.dy(2);
  const Expr r = AnyOutput(build<Rsqrt>({variance + attrs.epsilon}));
  const Expr h = (x - mean) * r;
  Expr by_dy, by_x, a_sum;
  if (attrs.is_training) {
    const auto project = [&](const Expr& v) { return v - in.mean(v) - h * in.mean(v * h); };
    const Expr projected = project(dy);
    const Expr g = b * dy - scale * r * (a * in.mean(dy * h) + dy * in.mean(a * h));
    const Expr a_projected = a * projected;
    a_sum = in.sum_to_channels(a_projected);
    by_dy = scale * r * project(a) + b * h + c;
    by_x = r * project(g) - scale * r * r * h * in.mean(a_projected);
  } else {
    a_sum = in.sum_to_channels(a * dy);
    by_dy = scale * r * a + b * h + c;
    by_x = r * b * dy;
    context.set_dx(3, -(r * b * in.sum_to_channels(dy)));
    context.set_dx(4, r * r * (scale * r * a_sum + b * in.sum_to_channels(dy * h)) * -0.5);
  }
  context.set_dx(0, in.like(by_dy, context.input(0)));
  context.set_dx(1, in.like(by_x, context.input(1)));
  context.set_dx(2, r * a_sum);
}

BuiltNode detail::any_fused_batch_norm(const AnyOutput& x, const AnyOutput& scale, const AnyOutput& offset,
                                       const AnyOutput& mean, const AnyOutput& variance, const BatchNormAttrs& attrs,
                                       const At& at) {
  GraphStore& graph = graph_of({&x, 1}, FusedBatchNorm::name, at);
  if (!attrs.is_training) return build<FusedBatchNorm>({x, scale, offset, mean, variance}, attrs, at);
  const AnyOutput none = any_constant(graph, AnyTensor(scale.dtype(), {0}), {.where = at.where});
  return build<FusedBatchNorm>({x, scale, offset, none, none}, attrs, at);
}

}  // namespace dflow
