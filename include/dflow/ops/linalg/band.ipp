#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/linalg/band.hpp>
#include <dflow/ops/linalg/matrix_shape.hpp>

namespace dflow {

namespace detail {

/// The diagonals of the matrices of input 0.
PartialShape diagonals(const InferContext& context) {
  const PartialShape x = context.with_rank_at_least(0, 2);
  if (!x.has_rank()) return x;
  const int last = x.rank() - 1;
  return x.subshape(0, last - 1).appended(smaller_dim(x[last - 1], x[last]));
}

/// The number on scalar input `i`, which names diagonals of `extent` of them.
void check_num_diagonals(const InferContext& context, int i, const char* name, std::int64_t extent) {
  static_cast<void>(context.with_rank(i, 0));
  const auto value = known_integers(context, i);
  if (value && extent != dynamic && (*value)[0] > extent) {
    context.fail(str_cat(name, " must be negative or at most ", extent, ", got ", (*value)[0]));
  }
}

}  // namespace detail

void MatrixBandPart::infer(InferContext& context) {
  const PartialShape x = context.with_rank_at_least(0, 2);
  detail::check_num_diagonals(context, 1, "num_lower", x.has_rank() ? x[x.rank() - 2] : dynamic);
  detail::check_num_diagonals(context, 2, "num_upper", x.has_rank() ? x[x.rank() - 1] : dynamic);
  context.set_output(0, x);
}

void MatrixBandPart::gradient(GradientContext& context) {
  context.set_dx(0, build<MatrixBandPart>({context.dy(), context.input(1), context.input(2)}));
}

void MatrixDiag::infer(InferContext& context) {
  const PartialShape x = context.with_rank_at_least(0, 1);
  context.set_output(0, x.has_rank() ? x.appended(x[x.rank() - 1]) : x);
}

void MatrixDiag::gradient(GradientContext& context) { context.set_dx(0, build<MatrixDiagPart>({context.dy()})); }

void MatrixDiagPart::infer(InferContext& context) { context.set_output(0, detail::diagonals(context)); }

void MatrixDiagPart::gradient(GradientContext& context) {
  context.set_dx(0, build<MatrixSetDiag>({zeros_like(context.input(0)), context.dy()}));
}

void MatrixSetDiag::infer(InferContext& context) {
  const PartialShape diagonal = context.merge(detail::diagonals(context), context.with_rank_at_least(1, 1));
  const PartialShape& x = context.input(0);
  if (!x.has_rank()) return context.set_output(0, x);
  const int batch = x.rank() - 2;
  const PartialShape known = context.merge(x.subshape(0, batch), diagonal.subshape(0, batch));
  context.set_output(0, known.appended(x[batch]).appended(x[batch + 1]));
}

void MatrixSetDiag::gradient(GradientContext& context) {
  context.set_dx(0, build<MatrixSetDiag>({context.dy(), zeros_like(context.input(1))}));
  context.set_dx(1, build<MatrixDiagPart>({context.dy()}));
}

Expr detail::any_band_part(const AnyOutput& x, std::int64_t num_lower, std::int64_t num_upper, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, MatrixBandPart::name, at);
  const auto scalar = [&](std::int64_t value) {
    return any_constant(graph, Tensor<std::int64_t>(value), {.where = at.where});
  };
  return AnyOutput(build<MatrixBandPart>({x, scalar(num_lower), scalar(num_upper)}, {}, at));
}

}  // namespace dflow
