#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/complex.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>

#include <initializer_list>

namespace dflow {

namespace detail {

DType complex_of(DType part) { return part == DType::float64 ? DType::complex128 : DType::complex64; }
DType part_of(DType complex) { return complex == DType::complex128 ? DType::float64 : DType::float32; }

template <class O>
Expr part(const Expr& z) {
  return AnyOutput(build<O>({z}, {}, {}, two_types(z.dtype(), part_of(z.dtype()))));
}
Expr complex_with(const Expr& real, const Expr& imag) { return any_complex(real, imag, {}); }

}  // namespace detail

void detail::infer_complex(InferContext& context) {
  const DType from = context.type_arg(0), to = context.type_arg(1);
  const DType wanted = is_complex(from) ? part_of(from) : complex_of(from);
  if (to != wanted) {
    context.fail(str_cat("gives ", dtype_name(wanted), " from ", dtype_name(from), ", not ", dtype_name(to)));
  }
  infer_elementwise(context);
}

AnyOutput detail::any_complex(const AnyOutput& real, const AnyOutput& imag, const At& at) {
  return build<Complex>({real, imag}, {}, at, two_types(real.dtype(), complex_of(real.dtype())));
}

void Complex::gradient(GradientContext& context) {
  context.set_dx(0, sum_to_shape_of(detail::part<Real>(context.dy()), context.input(0)));
  context.set_dx(1, sum_to_shape_of(detail::part<Imag>(context.dy()), context.input(1)));
}

void Real::gradient(GradientContext& context) {
  context.set_dx(0, detail::complex_with(context.dy(), zeros_like(context.dy())));
}

void Imag::gradient(GradientContext& context) {
  context.set_dx(0, detail::complex_with(zeros_like(context.dy()), context.dy()));
}

/// dy z / |z|.
void ComplexAbs::gradient(GradientContext& context) {
  const Expr z = context.input(0), length = context.output(0);
  const AnyOutput is_zero = build<Equal>({length, scalar_like(length, 0)});
  const Expr divisor = build<Select>({is_zero, ones_like(length), length});
  const Expr share = context.dy() / divisor;
  context.set_dx(0, detail::complex_with(share, zeros_like(share)) * z);
}

/// -dy / (y + i x) for z = x + i y: dy (-y + i x) / |z|^2.
void Angle::gradient(GradientContext& context) {
  const Expr z = context.input(0), dy = context.dy();
  const Expr turned = detail::complex_with(detail::part<Imag>(z), detail::part<Real>(z));
  context.set_dx(0, -(detail::complex_with(dy, zeros_like(dy)) / turned));
}

}  // namespace dflow
