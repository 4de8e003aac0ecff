#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/reduction/scan.hpp>
#include <dflow/ops/reduction/segment.hpp>
#include <dflow/ops/reduction/sorted_segment.hpp>

#include <optional>
#include <vector>

namespace dflow {

void detail::infer_segments(InferContext& context) {
  const int last = context.num_inputs() - 1;
  const PartialShape data = context.with_rank_at_least(0, 1), ids = context.with_rank(last, 1);
  const bool is_sparse = last == 2;
  const std::int64_t rows = is_sparse ? context.with_rank(1, 1)[0] : data.has_rank() ? data[0] : dynamic;
  static_cast<void>(context.merge_dim(rows, ids[0]));
  if (!data.has_rank()) return;
  std::int64_t segments = dynamic;
  if (const AnyTensor* known = context.value(last)) {
    segments = visit_dtype<IndexTypes>(known->dtype(), [&]<class I>() -> std::int64_t {
      const std::span<const I> values = known->span<I>();
      const std::int64_t id = values.empty() ? -1 : static_cast<std::int64_t>(values.back());
      // What else ids may be wrong in, the step says.
      return id < -1 || !try_add(id, std::int64_t{1}) ? dynamic : id + 1;
    });
  }
  context.set_output(0, data.with_dim(0, segments));
}

void detail::infer_segment_gradient(InferContext& context) {
  const PartialShape grad = context.with_rank_at_least(0, 1);
  static_cast<void>(context.merge_dim(context.with_rank(1, 1)[0], context.with_rank(2, 1)[0]));
  static_cast<void>(context.with_rank(3, 0));
  const AnyTensor* const rows = context.value(3);
  const std::int64_t count = rows == nullptr ? dynamic : rows->span<std::int32_t>()[0];
  if (rows != nullptr && count < 0) context.fail(str_cat("output_dim0 = ", count, " is negative"));
  if (grad.has_rank()) context.set_output(0, grad.with_dim(0, count));
}

namespace detail {

Expr as_column(const AnyOutput& vector, const Expr& x) {
  if (x.shape().has_rank()) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(x.shape().rank()), 1);
    dims[0] = -1;
    return any_reshape(vector, dims, {});
  }
  const AnyOutput ones = ones_like(any_slice(shape_of(x), {1}, {-1}, {}));
  const std::vector<AnyOutput> dims{shape_of(vector), ones};
  return AnyOutput(build<Reshape>({vector, any_concat(0, dims)}));
}

/// For each row the number of rows with its id, [n], or the square root of that number.
Expr rows_with_id(const Expr& ids, DType dtype, bool root = false) {
  const AnyOutput ones = cast_to(ones_like(ids), dtype);
  const AnyOutput count = build<Gather>({build<SegmentSum>({ones, ids}), ids});
  return root ? Expr(build<Sqrt>({count})) : Expr(count);
}

/// The rows of dy that the ids name.
Expr rows_of_dy(const GradientContext& context, const Expr& ids) {
  return AnyOutput(build<Gather>({context.dy(), ids}));
}

/// rows / divisor, a vector of one number for each row, divided in float where elements have 16 bits.
Expr divided_rows(const Expr& rows, const Expr& divisor) {
  return cast_to(Expr(widened(rows)) / as_column(divisor, rows), rows.dtype());
}

/// Equal extrema share the gradient.
void segment_extremum_gradient(GradientContext& context) {
  const Expr data = context.input(0), ids = context.input(1);
  const AnyOutput extrema = build<Gather>({context.output(0), ids});
  const AnyOutput is_extremum = build<Equal>({data, extrema});
  const Expr count = build<SegmentSum>({cast_to(is_extremum, data.dtype()), ids});
  // An id without rows counts none, and nothing reads its share.
  const Expr share = context.dy() / Expr(build<Maximum>({count, scalar_like(count, 1)}));
  const AnyOutput shares = build<Gather>({share, ids});
  context.set_dx(0, build<Select>({is_extremum, shares, zeros_like(shares)}));
}

/// The rows of data that were read have the gradients of their segments.
void sparse_segment_gradient(GradientContext& context, const Expr& rows) {
  context.set_dx(0, IndexedSlices{rows, context.input(1), shape_of(context.input(0))});
}

/// What each row of dy gives to the gradient of the segment that it came from; linear, so it is the op's adjoint.
void gradient_of_segment_gradient(GradientContext& context, const Expr& rows) {
  const Expr grad = context.input(0);
  context.set_dx(0, scatter_rows(rows, context.input(2), shape_of(grad), grad.shape()));
}

}  // namespace detail

void SegmentSum::gradient(GradientContext& context) {
  context.set_dx(0, detail::rows_of_dy(context, context.input(1)));
}

void SegmentMean::gradient(GradientContext& context) {
  const Expr ids = context.input(1), rows = detail::rows_of_dy(context, ids);
  const DType dtype = detail::widened(rows).dtype();
  context.set_dx(0, detail::divided_rows(rows, detail::rows_with_id(ids, dtype)));
}

/// The product of the other rows: that of those before times that of those behind. Each is a LinearScan, which begins
/// anew at the ends of segments.
void SegmentProd::gradient(GradientContext& context) {
  const Expr x = conj(context.input(0)), ids = context.input(1);
  const Expr end = AnyOutput(detail::any_reshape(scalar_like(ids, -1), {1}, {})), size = shape_of(ids);
  const auto ids_from = [&](bool next) -> AnyOutput {
    const std::vector<AnyOutput> parts = next ? std::vector<AnyOutput>{ids, end} : std::vector<AnyOutput>{end, ids};
    return build<Slice>({detail::any_concat(0, parts),
                         detail::int32_constant(context.graph(), std::array<std::int64_t, 1>{next ? 1 : 0}), size});
  };
  const AnyOutput axis = detail::int32_constant(context.graph(), 0);
  const auto products = [&](bool reverse) -> Expr {
    const AnyOutput is_end = build<NotEqual>({ids, ids_from(!reverse)});
    const AnyOutput factor = build<Select>({is_end, zeros_like(x), x});
    const AnyOutput start = build<Select>({is_end, ones_like(x), zeros_like(x)});
    return AnyOutput(build<LinearScan>({factor, start, axis}, {.reverse = reverse, .initial = 1.0f}));
  };
  context.set_dx(0, detail::rows_of_dy(context, ids) * products(false) * products(true));
}

void SegmentMin::gradient(GradientContext& context) { detail::segment_extremum_gradient(context); }
void SegmentMax::gradient(GradientContext& context) { detail::segment_extremum_gradient(context); }

void SparseSegmentSum::gradient(GradientContext& context) {
  detail::sparse_segment_gradient(context, detail::rows_of_dy(context, context.input(2)));
}
void SparseSegmentMean::gradient(GradientContext& context) {
  const Expr ids = context.input(2), rows = detail::rows_of_dy(context, ids);
  const DType dtype = detail::widened(rows).dtype();
  detail::sparse_segment_gradient(context, detail::divided_rows(rows, detail::rows_with_id(ids, dtype)));
}
void SparseSegmentSqrtN::gradient(GradientContext& context) {
  const Expr ids = context.input(2), rows = detail::rows_of_dy(context, ids);
  const DType dtype = detail::widened(rows).dtype();
  detail::sparse_segment_gradient(context, detail::divided_rows(rows, detail::rows_with_id(ids, dtype, true)));
}

void SparseSegmentSumGrad::gradient(GradientContext& context) {
  detail::gradient_of_segment_gradient(context, detail::rows_of_dy(context, context.input(1)));
}
void SparseSegmentMeanGrad::gradient(GradientContext& context) {
  const Expr rows = detail::rows_of_dy(context, context.input(1));
  const Expr count = detail::rows_with_id(context.input(2), detail::widened(rows).dtype());
  detail::gradient_of_segment_gradient(context, detail::divided_rows(rows, count));
}
void SparseSegmentSqrtNGrad::gradient(GradientContext& context) {
  const Expr rows = detail::rows_of_dy(context, context.input(1));
  const Expr root = detail::rows_with_id(context.input(2), detail::widened(rows).dtype(), true);
  detail::gradient_of_segment_gradient(context, detail::divided_rows(rows, root));
}

}  // namespace dflow
