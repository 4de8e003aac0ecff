#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/linalg/band.hpp>
#include <dflow/ops/linalg/matrix_shape.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/reduction/reduce.hpp>

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

AnyOutput detail::any_diag(const AnyOutput& x, const At& at) {
  static_cast<void>(graph_of({&x, 1}, MatrixDiag::name, at));
  const At here{.where = at.where};
  const AnyOutput matrix = build<MatrixDiag>({any_reshape(x, {-1}, here)}, {}, here);
  if (x.shape().is_fully_defined()) {
    SmallIntegers twice;
    for (int i = 0; i < 2 * x.shape().rank(); ++i) twice.push_back(x.shape()[i % x.shape().rank()]);
    return any_reshape(matrix, twice.span(), at);
  }
  const AnyOutput dims = shape_of(x);
  return build<Reshape>({matrix, any_concat(0, std::vector<AnyOutput>{dims, dims}, here)}, {}, at);
}

AnyOutput detail::any_diag_part(const AnyOutput& x, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, MatrixDiagPart::name, at);
  const PartialShape& shape = x.shape();
  const int half = shape.has_rank() ? shape.rank() / 2 : 0;
  const bool is_even = shape.has_rank() && shape.rank() % 2 == 0;
  if (!is_even || !shape.subshape(0, half).is_compatible_with(shape.subshape(half, shape.rank()))) {
    throw_error(Status::invalid_argument(str_cat("a diagonal part needs a known even rank and two halves of the same "
                                                 "dimensions, and the input has shape ",
                                                 shape.to_string()))
                    .with_node("DiagPart", at.name)
                    .with_location(at.where));
  }
  const At here{.where = at.where};
  const auto part_of = [&](const AnyOutput& square) { return build<MatrixDiagPart>({square}, {}, here); };
  if (shape.is_fully_defined()) {
    const auto dims = shape.dims().first(static_cast<std::size_t>(half));
    const std::int64_t count = *try_product(dims);
    return any_reshape(part_of(any_reshape(x, {count, count}, here)), dims, at);
  }
  const AnyOutput dims = shape_of(x), rows = any_slice(dims, {0}, {half}, here);
  // Where the halves differ, an extent of -2 makes the step fail.
  const AnyOutput are_same = build<Equal>({rows, any_slice(dims, {half}, {half}, here)}, {}, here);
  const AnyOutput never = build<Sub>({zeros_like(rows), int32_constant(graph, 2, here)}, {}, here);
  const AnyOutput extents = build<Select>({are_same, rows, never}, {}, here);
  const AnyOutput both = any_concat(0, std::vector<AnyOutput>{extents, extents}, here);
  const AnyOutput count = build<Prod>({rows, int32_constant(graph, 0, here)}, {}, here);
  const AnyOutput square =
      build<Reshape>({build<Reshape>({x, both}, {}, here), build<Pack>({count, count}, {}, here)}, {}, here);
  return build<Reshape>({part_of(square), rows}, {}, at);
}

Expr detail::any_band_part(const AnyOutput& x, std::int64_t num_lower, std::int64_t num_upper, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, MatrixBandPart::name, at);
  const auto scalar = [&](std::int64_t value) {
    return any_constant(graph, Tensor<std::int64_t>(value), {.where = at.where});
  };
  return AnyOutput(build<MatrixBandPart>({x, scalar(num_lower), scalar(num_upper)}, {}, at));
}

}  // namespace dflow
