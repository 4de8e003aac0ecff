#pragma once

#include <dflow/kernels/cpu/data_flow/accumulator.hpp>

namespace dflow {

AccumulatorState& detail::accumulator_input(const KernelContext& context, bool is_sparse) {
  AccumulatorState& state = context.resource<AccumulatorState>(0);
  const DType dtype = context.node().types[0];
  if (state.dtype() != dtype || state.kind().is_sparse != is_sparse) {
    context.fail(
        str_cat(state.debug_string(), " does not gather ", is_sparse ? "rows" : "tensors", " of ", dtype_name(dtype)));
  }
  return state;
}

AnyTensor detail::kept_input(const KernelContext& context, int i) {
  return context.owns_input(i) ? context.input(i) : context.input(i).deep_copy(*context.device().allocator);
}

AccumulatedGradient detail::dense_gradient(const KernelContext& context, const AccumulatorState& state,
                                           std::int64_t rank) {
  const Shape& shape = context.input(2).shape();
  if (!state.shape().is_compatible_with(shape)) {
    context.fail(str_cat("the gradient has shape ", shape.to_string(), ", not that of ", state.debug_string()));
  }
  return {rank, context.scalar_input<std::int64_t>(1), {}, kept_input(context, 2)};
}

AccumulatedGradient detail::sparse_gradient(const KernelContext& context, const AccumulatorState& state,
                                            std::int64_t rank) {
  const Shape &indices = context.input(2).shape(), &values = context.input(3).shape();
  const PartialShape& wanted = state.shape();
  const bool fits =
      indices.rank() == 1 && values.rank() > 0 && values[0] == indices[0] &&
      (!wanted.has_rank() ||
       PartialShape(wanted.subshape(1, wanted.rank())).is_compatible_with(values.subshape(1, values.rank())));
  if (!fits) {
    context.fail(str_cat("indices of shape ", indices.to_string(), " and values of shape ", values.to_string(),
                         " are no rows of ", state.debug_string()));
  }
  return {rank, context.scalar_input<std::int64_t>(1), kept_input(context, 2), kept_input(context, 3)};
}

TakenGradients detail::take_ranks(const KernelContext& context, bool is_sparse) {
  const Tensor<std::int32_t>& ranks = context.input<std::int32_t>(1);
  if (ranks.rank() != 1 || ranks.num_elements() == 0) context.fail("the ranks are no list of one or more");
  return accumulator_input(context, is_sparse).take(ranks.span(), context.scalar_input<std::int64_t>(2));
}

}  // namespace dflow
