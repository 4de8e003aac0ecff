#pragma once

#include <dflow/core/sum_type.hpp>
#include <dflow/kernels/cuda/routines/reductions.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace dflow::cuda {

namespace detail {

/// The kept and the reduced runs of dimensions.
inline ReduceArgs reduce_args(const dflow::detail::DimRuns& runs) {
  ReduceArgs args;
  std::int64_t stride = 1;
  for (const auto& run : runs.runs()) stride *= run.extent;
  for (const auto& run : runs.runs()) {
    stride /= run.extent;
    if (run.is_reduced) {
      args.reduced_extents[args.num_reduced_runs] = run.extent;
      args.reduced_strides[args.num_reduced_runs++] = stride;
      args.reduced *= run.extent;
    } else {
      args.kept_extents[args.num_kept_runs] = run.extent;
      args.kept_strides[args.num_kept_runs++] = stride;
      args.outputs *= run.extent;
    }
  }
  return args;
}

inline void issue_reduction(KernelContext& context, const ReductionCode& code, ReduceArgs args, AnyTensor& y) {
  if (args.outputs == 0) return;
  args.x = context.input(0).raw_data();
  args.y = y.raw_data();
  // A thread for each output where that makes threads enough, which then read side by side; else a block.
  constexpr std::int64_t enough_threads = 4096, few_elements = 64, most_blocks = 1 << 16;
  const bool reads_apart =
      args.num_reduced_runs > 0 && args.reduced_strides[args.num_reduced_runs - 1] == 1 && args.num_kept_runs > 0;
  if (args.reduced < few_elements || (args.outputs >= enough_threads && !reads_apart)) {
    return launch(context, code.by_thread(), grid_for(args.outputs), &args);
  }
  launch(context, code.by_block(),
         {static_cast<std::uint32_t>(std::min(args.outputs, most_blocks)),
          ReduceByBlockBody<SumReduction, float>::threads},
         &args);
}

inline void reduce_runs(KernelContext& context, const ReductionCode& code, const Shape& shape,
                        const dflow::detail::DimRuns& runs) {
  const AnyTensor& x = context.input(0);
  if (x.num_elements() == 0) {
    ReduceArgs args;  // the extents beside the zero may be as large as they like
    args.outputs = shape.num_elements();
    args.reduced = 0;
    return issue_reduction(context, code, args, context.allocate_output(0, shape));
  }
  if (runs.num_reduced() == 0) return context.set_output(0, x.reshaped(shape));
  issue_reduction(context, code, reduce_args(runs), context.allocate_output(0, shape));
}

}  // namespace detail

void reduce_axes(KernelContext& context, const ReductionCode& code) {
  detail::reduce_runs(context, code, dflow::detail::inferred_shape(context),
                      dflow::detail::DimRuns(context.input(0).shape(), context.input(1)));
}

void reduce_to_shape(KernelContext& context, const ReductionCode& code) {
  const Shape narrow = dflow::detail::inferred_shape(context), &wide = context.input(0).shape();
  const int missing = wide.rank() - narrow.rank();
  std::uint32_t summed = 0;
  for (int d = 0; d < wide.rank(); ++d) {
    summed |= std::uint32_t{d < missing || (narrow.dim(d - missing) == 1 && wide.dim(d) != 1)} << d;
  }
  detail::reduce_runs(context, code, narrow, dflow::detail::DimRuns(wide, summed));
}

void reduce_to_channels(KernelContext& context, const ReductionCode& code) {
  const AnyTensor& x = context.input(0);
  if (x.rank() < 2) dflow::detail::refuse_shapes(context);
  ReduceArgs args;
  args.outputs = x.dim(x.rank() - 1);
  args.reduced = args.outputs == 0 ? 0 : x.num_elements() / args.outputs;
  args.num_kept_runs = args.num_reduced_runs = 1;
  args.kept_extents[0] = args.outputs;
  args.kept_strides[0] = 1;
  args.reduced_extents[0] = args.reduced;
  args.reduced_strides[0] = args.outputs;
  detail::issue_reduction(context, code, args, context.allocate_output(0, {args.outputs}));
}

void find_extreme(KernelContext& context, const KernelFunction& function) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor& x = context.input(0);
  const int axis = dflow::detail::non_negative_axis(context.input<std::int32_t>(1).scalar(), x.rank());
  AnyTensor& y = context.allocate_output(0, shape);
  if (y.num_elements() == 0) return;
  const ArgArgs args{x.raw_data(), static_cast<std::int64_t*>(y.raw_data()), x.shape().num_elements(0, axis),
                     x.dim(axis), x.shape().num_elements(axis + 1, x.rank())};
  launch(context, function, grid_for(y.num_elements()), &args);
}

void add_inputs(KernelContext& context, const KernelFunction& function) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const int count = context.num_inputs();
  if (count == 1) return context.set_output(0, context.input(0));
  std::vector<const void*> inputs;
  int own = -1;  // the input whose buffer the sums may take: the first launch reads it
  for (int k = 0; k < count; ++k) {
    inputs.push_back(context.input(k).raw_data());
    if (own < 0 && k < AddNArgs::max_inputs && context.owns_input(k)) own = k;
  }
  AnyTensor& y = own < 0 ? context.allocate_output(0, shape) : context.forward_or_allocate(own, 0, shape);
  if (y.num_elements() == 0) return;
  const bool is_widened = needs_wide_sums(y.dtype(), inputs.size());
  AnyTensor wide = is_widened ? context.allocate_temporary(DType::float32, shape) : AnyTensor();
  MemoryUses uses(context);
  if (is_widened) uses.add(wide, true);
  add_terms(context, function, inputs, y.num_elements(), y.raw_data(), static_cast<float*>(wide.raw_data()), uses);
}

bool needs_wide_sums(DType dtype, std::size_t num_terms) noexcept {
  return dflow::detail::is_16_bit_float(dtype) && num_terms > static_cast<std::size_t>(AddNArgs::max_inputs);
}

void add_terms(const KernelContext& context, const KernelFunction& function, std::span<const void* const> terms,
               std::int64_t n, void* y, float* sums, const MemoryUses& uses) {
  AddNArgs args;
  args.n = n;
  args.y = y;
  for (std::size_t next = 0; next < terms.size();) {
    // The sums so far are the first input of the next part, or lie beside it.
    args.num_inputs = 0;
    if (next != 0 && sums != nullptr) args.sums_before = sums;
    if (next != 0 && sums == nullptr) args.x[args.num_inputs++] = y;
    while (args.num_inputs < AddNArgs::max_inputs && next < terms.size()) args.x[args.num_inputs++] = terms[next++];
    args.sums = next < terms.size() ? sums : nullptr;
    launch(context, function, grid_for(n), &args, uses);
  }
}

}  // namespace dflow::cuda
