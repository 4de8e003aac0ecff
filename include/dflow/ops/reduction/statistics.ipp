#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/special.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/reduction/statistics.hpp>

namespace dflow {

namespace detail {

/// A reduction over axes with all dimensions kept.
template <class O>
Expr reduced_keeping(const AnyOutput& x, const AnyOutput& axes) {
  return AnyOutput(build<O>({x, axes}, {.keep_dims = true}));
}
/// x, a reduction with all dimensions kept, without the reduced ones unless they are to be kept.
AnyOutput settled(const AnyOutput& x, const AnyOutput& axes, bool keep_dims, DType dtype, const At& at) {
  const AnyOutput result = keep_dims ? x : AnyOutput(build<Sum>({x, axes}));
  return cast_or_name(result, dtype, at);
}

}  // namespace detail

AnyOutput detail::any_logsumexp(const AnyOutput& x, const IndexList& axes, bool keep_dims, const At& at) {
  const Composite place(graph_of({&x, 1}, "reduce_logsumexp", at), at.where);
  const ReduceOperands of = reduce_operands(widened(x), axes, true, "reduce_logsumexp", at);
  const Expr largest = reduced_keeping<Max>(of.x, of.axes);
  const AnyOutput is_finite = build<IsFinite>({largest});
  const Expr pivot = build<StopGradient>({build<Select>({is_finite, largest, zeros_like(largest)})});
  const Expr sum = reduced_keeping<Sum>(AnyOutput(build<Exp>({Expr(of.x) - pivot})), of.axes);
  return settled(Expr(build<Log>({sum})) + pivot, of.axes, keep_dims, x.dtype(), at);
}

AnyOutput detail::any_lbeta(const AnyOutput& x, const At& at) {
  const Composite place(graph_of({&x, 1}, "lbeta", at), at.where);
  const AnyOutput axis = int32_constant(*x.graph(), -1);
  const Expr wide = widened(x);
  const Expr parts = build<Sum>({build<Lgamma>({wide}), axis});
  return cast_or_name(parts - Expr(build<Lgamma>({build<Sum>({wide, axis})})), x.dtype(), at);
}

AnyOutput detail::any_zero_fraction(const AnyOutput& x, const At& at) {
  const Composite place(graph_of({&x, 1}, "zero_fraction", at), at.where);
  const AnyOutput is_zero = cast_to(build<Equal>({x, scalar_like(x, 0)}), DType::float32);
  const ReduceOperands of = reduce_operands(is_zero, {}, false, "zero_fraction", at);
  return build<Mean>({of.x, of.axes}, {}, at);
}

AnyOutput detail::any_l2_normalize(const AnyOutput& x, const IndexList& axes, double epsilon, const At& at) {
  const Composite place(graph_of({&x, 1}, "l2_normalize", at), at.where);
  const ReduceOperands of = reduce_operands(widened(x), axes, true, "l2_normalize", at);
  const Expr squares = reduced_keeping<Sum>(AnyOutput(build<Square>({of.x})), of.axes);
  const Expr scale = build<Rsqrt>({build<Maximum>({squares, scalar_like(squares, epsilon)})});
  return cast_or_name(Expr(of.x) * scale, x.dtype(), at);
}

std::array<AnyOutput, 2> detail::any_moments(const AnyOutput& x, const IndexList& axes, bool keep_dims, const At& at) {
  const Composite place(graph_of({&x, 1}, "moments", at), at.where);
  const ReduceOperands of = reduce_operands(widened(x), axes, true, "moments", at);
  const Expr mean = reduced_keeping<Mean>(of.x, of.axes);
  // The sum of the distances is 0, so the variance does not change with the mean.
  const Expr distance = Expr(of.x) - Expr(build<StopGradient>({mean}));
  const Expr variance = reduced_keeping<Mean>(AnyOutput(build<Square>({distance})), of.axes);
  return {settled(mean, of.axes, keep_dims, x.dtype(), at), settled(variance, of.axes, keep_dims, x.dtype(), {})};
}

std::array<AnyOutput, 3> detail::any_statistics(const AnyOutput& x, const IndexList& axes, const AnyOutput& shift,
                                                bool keep_dims, const At& at) {
  const Composite place(graph_of({&x, 1}, "sufficient_statistics", at), at.where);
  const ReduceOperands of = reduce_operands(widened(x), axes, true, "sufficient_statistics", at);
  const Expr shifted = shift.is_valid() ? Expr(of.x) - Expr(widened(shift)) : Expr(of.x);
  const Expr sum = reduced_keeping<Sum>(shifted, of.axes);
  const Expr squares = reduced_keeping<Sum>(AnyOutput(build<Square>({shifted})), of.axes);
  const auto number_of_elements = [](const AnyOutput& y) -> Expr {
    return cast_to(build<SizeOf>({y}), DType::float64);
  };
  const AnyOutput count = cast_to(number_of_elements(of.x) / number_of_elements(sum), x.dtype());
  return {count, settled(sum, of.axes, keep_dims, x.dtype(), at), settled(squares, of.axes, keep_dims, x.dtype(), {})};
}

std::array<AnyOutput, 2> detail::moments_of(const AnyOutput& count, const AnyOutput& sum, const AnyOutput& squares,
                                            const AnyOutput& shift, const At& at) {
  const Composite place(graph_of({&count, 1}, "normalize_moments", at), at.where);
  const Expr n = widened(count), mean = Expr(widened(sum)) / n;
  const Expr variance = Expr(widened(squares)) / n - Expr(build<Square>({mean}));
  const Expr moved = shift.is_valid() ? mean + Expr(widened(shift)) : mean;
  return {cast_or_name(moved, count.dtype(), at), cast_or_name(variance, count.dtype(), {})};
}

AnyOutput detail::any_accumulate_n(std::span<const AnyOutput> values, const At& at) {
  const Composite place(graph_of(values, "accumulate_n", at), at.where);
  PartialShape shape = values[0].shape();
  Expr sum = widened(values[0]);
  for (const AnyOutput& value : values.subspan(1)) {
    if (!shape.is_compatible_with(value.shape())) {
      throw_error(Status::invalid_argument(str_cat("accumulate_n: a value has shape ", value.shape().to_string(),
                                                   ", the ones before it ", shape.to_string()))
                      .with_location(at.where));
    }
    shape = shape.merged_with(value.shape());
    sum = sum + Expr(widened(value));
  }
  return cast_or_name(sum, values[0].dtype(), at);
}

}  // namespace dflow
