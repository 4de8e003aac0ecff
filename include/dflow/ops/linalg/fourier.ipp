#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/linalg/fourier.hpp>

#include <algorithm>
#include <optional>

namespace dflow {

namespace detail {

/// An op's element types have to go together.
void check_same_precision(const InferContext& context) {
  const DType real = context.type_arg(0), complex = context.type_arg(1);
  if (complex == (real == DType::float32 ? DType::complex64 : DType::complex128)) return;
  context.fail(
      str_cat("Treal ", dtype_name(real), " and Tcomplex ", dtype_name(complex), " are of different precision"));
}

/// The lengths on input 1 as far as they are known, one for each dimension that is transformed.
std::optional<SmallIntegers> transform_lengths(const InferContext& context, int rank) {
  static_cast<void>(context.merge_dim(context.with_rank(1, 1)[0], rank));
  const std::optional<SmallIntegers> lengths = known_integers(context, 1);
  if (!lengths) return lengths;
  for (const std::int64_t length : *lengths) {
    if (length < 0) context.fail(str_cat("fft_length has the negative ", length));
    if (length > max_fourier_length) {
      context.fail(str_cat("fft_length has ", length, ", which is more than ", max_fourier_length));
    }
  }
  return lengths;
}

TypeArgs transform_types(DType given) {
  const bool is_double = given == DType::float64 || given == DType::complex128;
  return is_double ? type_args<double, std::complex<double>>() : type_args<float, std::complex<float>>();
}

/// The op that transforms `rank` dimensions.
template <class One, class Two, class Three>
AnyOutput build_real_fourier(int rank, const AnyOutput& x, const AnyOutput& fft_length, const At& at) {
  const TypeArgs types = transform_types(x.dtype());
  if (rank == 1) return build<One>({x, fft_length}, {}, at, types);
  if (rank == 2) return build<Two>({x, fft_length}, {}, at, types);
  return build<Three>({x, fft_length}, {}, at, types);
}

/// x's own extents, of the last dimension of coefficients the even length.
AnyOutput default_lengths(const AnyOutput& x, int rank, bool inverse, const At& at) {
  GraphStore& graph = *x.graph();
  const At here{.where = at.where};
  const PartialShape shape = x.shape();
  bool is_known = shape.has_rank();
  SmallIntegers lengths;
  if (is_known && shape.rank() < rank) {
    for (int i = 0; i < rank; ++i) lengths.push_back(1);  // the op reports the error
    return int32_constant(graph, lengths.span(), here);
  }
  for (int i = shape.rank() - rank; is_known && i < shape.rank(); ++i) {
    is_known = shape[i] != dynamic;
    const bool is_half = inverse && i == shape.rank() - 1;
    lengths.push_back(is_half ? std::max<std::int64_t>(2 * (shape[i] - 1), 0) : shape[i]);
  }
  if (is_known) return int32_constant(graph, lengths.span(), here);
  const Expr first = any_reshape(Expr(AnyOutput(build<RankOf>({x}, {}, here))) - static_cast<double>(rank), {1}, here);
  const AnyOutput extents = build<ShapeOf>({x}, {}, here);
  const std::int64_t count[] = {rank};
  const Expr own = AnyOutput(build<Slice>({extents, first, int32_constant(graph, count, here)}, {}, here));
  if (!inverse) return own;
  SmallIntegers factor, less;
  for (int i = 0; i < rank; ++i) factor.push_back(i == rank - 1 ? 2 : 1), less.push_back(i == rank - 1 ? 2 : 0);
  return own * Expr(int32_constant(graph, factor.span(), here)) - Expr(int32_constant(graph, less.span(), here));
}

}  // namespace detail

void detail::infer_fourier(InferContext& context, int rank) {
  context.set_output(0, context.with_rank_at_least(0, rank));
}

void detail::set_fourier_gradient(GradientContext& context, Transform transform) {
  context.set_dx(0, conj(transform(conj(context.dy()))));
}

void detail::infer_real_fourier(InferContext& context, int rank, bool inverse) {
  check_same_precision(context);
  PartialShape shape = context.with_rank_at_least(0, rank);
  const std::optional<SmallIntegers> lengths = transform_lengths(context, rank);
  if (!shape.has_rank()) return context.set_output(0, shape);
  for (int i = 0; i < rank; ++i) {
    const bool is_half = !inverse && i == rank - 1;
    const std::int64_t length = lengths ? (*lengths)[i] : dynamic;
    shape = shape.with_dim(shape.rank() - rank + i, is_half && length > 0 ? length / 2 + 1 : length);
  }
  context.set_output(0, shape);
}

void detail::set_real_fourier_gradient(GradientContext& context, int rank, bool inverse) {
  const Expr x = context.input(0);
  const TypeArgs types = transform_types(x.dtype());
  const AnyOutput lengths = context.input(1), extents = shape_of(x);
  const RealFourierGradAttrs attrs{rank};
  context.set_dx(0, inverse ? build<IrfftGrad>({context.dy(), lengths, extents}, attrs, {}, types)
                            : build<RfftGrad>({context.dy(), lengths, extents}, attrs, {}, types));
}

AnyOutput detail::any_real_fourier(const AnyOutput& x, const IndexList& fft_length, int rank, bool inverse,
                                   const At& at) {
  GraphStore& graph = graph_of({&x, 1}, inverse ? Irfft::name : Rfft::name, at);
  const AnyOutput lengths = fft_length.is_given() ? fft_length.edge(graph, DType::int32, {.where = at.where})
                                                  : default_lengths(x, rank, inverse, at);
  return inverse ? build_real_fourier<Irfft, Irfft2d, Irfft3d>(rank, x, lengths, at)
                 : build_real_fourier<Rfft, Rfft2d, Rfft3d>(rank, x, lengths, at);
}

namespace detail {

/// The gradient has the shape on input 2. The shape of dy is checked against the transform's output.
void infer_real_fourier_grad(InferContext& context, const RealFourierGradAttrs& attrs, bool inverse) {
  check_same_precision(context);
  if (attrs.rank < 1 || attrs.rank > 3) context.fail(str_cat("rank must be 1, 2 or 3, got ", attrs.rank));
  const int rank = static_cast<int>(attrs.rank);
  const PartialShape dy = context.with_rank_at_least(0, rank);
  const std::optional<SmallIntegers> lengths = transform_lengths(context, rank);
  static_cast<void>(context.with_rank(2, 1));
  const PartialShape x = context.value_as_shape(2).value_or(PartialShape::unknown());
  context.set_output(0, x);
  if (!dy.has_rank()) return;
  if (!x.has_rank()) return context.set_output(0, PartialShape::unknown(dy.rank()));
  if (x.rank() != dy.rank()) context.fail(str_cat("the gradient's rank is not that of shape ", x.to_string()));
  const int batch = dy.rank() - rank;
  static_cast<void>(context.merge(dy.subshape(0, batch), x.subshape(0, batch)));
  for (int i = 0; lengths && i < rank; ++i) {
    const bool is_half = !inverse && i == rank - 1;
    const std::int64_t length = (*lengths)[i];
    static_cast<void>(context.merge_dim(dy[batch + i], is_half && length > 0 ? length / 2 + 1 : length));
  }
}

}  // namespace detail

void RfftGrad::infer(InferContext& context) {
  detail::infer_real_fourier_grad(context, context.attrs<RfftGrad>(), false);
}

void RfftGrad::gradient(GradientContext& context) {
  const int rank = static_cast<int>(context.attrs<RfftGrad>().rank);
  context.set_dx(0, detail::build_real_fourier<Rfft, Rfft2d, Rfft3d>(rank, context.dy(), context.input(1), {}));
}

void IrfftGrad::infer(InferContext& context) {
  detail::infer_real_fourier_grad(context, context.attrs<IrfftGrad>(), true);
}

void IrfftGrad::gradient(GradientContext& context) {
  const int rank = static_cast<int>(context.attrs<IrfftGrad>().rank);
  context.set_dx(0, detail::build_real_fourier<Irfft, Irfft2d, Irfft3d>(rank, context.dy(), context.input(1), {}));
}

}  // namespace dflow
