#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/nn/softmax.hpp>
#include <dflow/kernels/cuda/routines/reductions.ipp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace dflow::cuda {

namespace detail {

inline void launch_rows(const KernelContext& context, const KernelFunction& function, const RowArgs& args) {
  constexpr std::int64_t most_blocks = 1 << 16;
  launch(context, function, {static_cast<std::uint32_t>(std::min(args.rows, most_blocks)), row_threads}, &args,
         args.errors);
}

}  // namespace detail

void map_rows(KernelContext& context, const KernelFunction& function) {
  const AnyTensor& x = context.input(0);
  if (x.rank() < 1) dflow::detail::refuse_shapes(context);
  RowArgs args;
  args.columns = x.dim(x.rank() - 1);
  args.x = x.raw_data();
  const Shape shape = x.shape();
  AnyTensor& y = context.forward_or_allocate(0, 0, shape);
  if (y.num_elements() == 0) return;
  args.rows = y.num_elements() / args.columns;
  args.y = y.raw_data();
  detail::launch_rows(context, function, args);
}

void map_row_gradients(KernelContext& context, const KernelFunction& function) {
  const AnyTensor &y = context.input(0), &dy = context.input(1);
  if (y.rank() < 1 || !(y.shape() == dy.shape())) dflow::detail::refuse_shapes(context);
  RowArgs args;
  args.columns = y.dim(y.rank() - 1);
  args.x = y.raw_data();
  args.other = dy.raw_data();
  const Shape shape = dy.shape();
  AnyTensor& dx = context.forward_or_allocate(1, 0, shape);
  if (dx.num_elements() == 0) return;
  args.rows = dx.num_elements() / args.columns;
  args.y = dx.raw_data();
  detail::launch_rows(context, function, args);
}

void cross_entropy(KernelContext& context, const KernelFunction& function) {
  const AnyTensor &logits = context.input(0), &labels = context.input(1);
  if (logits.rank() < 1 || !(logits.shape() == labels.shape())) dflow::detail::refuse_shapes(context);
  const Shape shape = logits.shape(), rows = shape.subshape(0, shape.rank() - 1);
  RowArgs args;
  args.rows = rows.num_elements();
  args.columns = shape[shape.rank() - 1];
  args.x = logits.raw_data();
  args.other = labels.raw_data();
  args.loss = context.allocate_output(0, rows).raw_data();
  args.y = context.forward_or_allocate(0, 1, shape).raw_data();
  if (args.rows == 0) return;
  if (args.columns == 0) return clear_output(context, context.output(0));
  detail::launch_rows(context, function, args);
}

void sparse_cross_entropy(KernelContext& context, const KernelFunction& function) {
  const AnyTensor &logits = context.input(0), &labels = context.input(1);
  if (logits.rank() < 1 || logits.shape().subshape(0, logits.rank() - 1) != labels.shape()) {
    dflow::detail::refuse_shapes(context);
  }
  const Shape shape = logits.shape();
  RowArgs args;
  args.rows = labels.num_elements();
  args.columns = shape[shape.rank() - 1];
  args.x = logits.raw_data();
  args.other = labels.raw_data();
  args.loss = context.allocate_output(0, labels.shape()).raw_data();
  args.y = context.forward_or_allocate(0, 1, shape).raw_data();
  if (args.rows == 0) return;
  const CudaStep::Note note = step_of(context).note(context, [classes = args.columns](const ErrorSlot& slot) {
    std::int64_t label = 0;
    std::memcpy(&label, slot.values[0], sizeof(label));
    return Status::invalid_argument(str_cat("labels[", slot.position, "] = ", label, " is outside [0, ", classes, ")"));
  });
  args.errors = note.slot;
  args.kernel = note.kernel;
  detail::launch_rows(context, function, args);
}

void reduce_all_elements(KernelContext& context, const ReductionCode& code) {
  const AnyTensor& x = context.input(0);
  ReduceArgs args;
  args.reduced = x.num_elements();
  args.num_reduced_runs = 1;
  args.reduced_extents[0] = args.reduced;
  args.reduced_strides[0] = 1;
  detail::issue_reduction(context, code, args, context.allocate_output(0, {}));
}

}  // namespace dflow::cuda
