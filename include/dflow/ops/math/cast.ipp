#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/math/cast.hpp>

namespace dflow {

void Cast::infer(InferContext& context) { context.set_output(0, context.input(0)); }

/// Only between floats and complex numbers does the output depend smoothly on the input.
void Cast::gradient(GradientContext& context) {
  const DType from = context.input(0).dtype(), to = context.output(0).dtype();
  const auto is_smooth = [](DType dtype) { return is_floating(dtype) || is_complex(dtype); };
  if (is_smooth(from) && is_smooth(to)) context.set_dx(0, detail::cast_to(context.dy(), from));
}

AnyOutput detail::cast_to(const AnyOutput& x, DType to, const At& at) {
  if (x.dtype() == to) return x;
  return build<Cast>({x}, {}, at, two_types(x.dtype(), to));
}

AnyOutput detail::widened(const AnyOutput& x) { return cast_to(x, sum_type(x.dtype())); }

}  // namespace dflow
