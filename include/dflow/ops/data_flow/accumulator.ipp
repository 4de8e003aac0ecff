#pragma once

#include <dflow/ops/data_flow/accumulator.hpp>

#include <string_view>

namespace dflow {

namespace detail {

void infer_accumulator(InferContext& context, const AccumulatorAttrs& attrs, bool is_sparse) {
  if (attrs.reduction_type != "MEAN" && attrs.reduction_type != "SUM") {
    context.fail(str_cat("reduction_type is '", attrs.reduction_type, "', not MEAN or SUM"));
  }
  if (is_sparse && attrs.shape.has_rank() && attrs.shape.rank() == 0) context.fail("a scalar has no rows");
  context.set_output(0, attrs.shape);
}

/// indices [n] and values [n, row...] of a variable [limit, row...]
void set_rows(InferContext& context) {
  const PartialShape& shape = context.input(0);
  context.set_output(0, PartialShape{dynamic});
  context.set_output(1, shape.has_rank() && shape.rank() > 0
                            ? PartialShape{dynamic}.concatenated(shape.subshape(1, shape.rank()))
                            : PartialShape::unknown());
}

}  // namespace detail

void ConditionalAccumulator::infer(InferContext& context) {
  detail::infer_accumulator(context, context.attrs<ConditionalAccumulator>(), false);
}
void SparseConditionalAccumulator::infer(InferContext& context) {
  detail::infer_accumulator(context, context.attrs<SparseConditionalAccumulator>(), true);
}
void AccumulatorApplyGradient::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  static_cast<void>(context.merge(context.input(0), context.input(2)));
}
void SparseAccumulatorApplyGradient::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  const PartialShape rows = context.with_rank(2, 1), shape = context.with_rank_at_least(0, 1);
  if (shape.has_rank()) {
    static_cast<void>(context.merge(rows.concatenated(shape.subshape(1, shape.rank())), context.input(3)));
  }
}
void AccumulatorTakeGradient::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, context.input(0));
}
void SparseAccumulatorTakeGradient::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  detail::set_rows(context);
}
void AccumulatorTakeRanks::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 1));
  static_cast<void>(context.with_rank(2, 0));
  context.set_output(0, context.input(0));
}
void SparseAccumulatorTakeRanks::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 1));
  static_cast<void>(context.with_rank(2, 0));
  detail::set_rows(context);
}
void AccumulatorSetGlobalStep::infer(InferContext& context) { static_cast<void>(context.with_rank(1, 0)); }
void AccumulatorNumAccumulated::infer(InferContext& context) { context.set_output(0, Shape{}); }

}  // namespace dflow
