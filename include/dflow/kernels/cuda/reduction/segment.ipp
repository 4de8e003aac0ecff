#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/reduction/segment.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/cuda/routines/sorted_rows.hpp>

#include <cstdint>

namespace dflow::cuda {

void sum_segments(KernelContext& context, const KernelFunction& function) {
  const AnyTensor &data = context.input(0), &ids = context.input(1);
  const std::int64_t segments = context.input<std::int32_t>(2).scalar();
  if (segments < 0) context.fail(str_cat("cannot make ", segments, " segments"));
  if (ids.rank() > data.rank() || data.shape().subshape(0, ids.rank()) != ids.shape()) {
    context.fail(str_cat("the ids' shape ", ids.shape().to_string(), " is not the first part of data's, ",
                         data.shape().to_string()));
  }
  const Shape row = data.shape().subshape(ids.rank(), data.rank());
  AnyTensor& sums = context.allocate_output(0, Shape{segments}.concatenated(row));
  clear_output(context, sums);
  RowUpdateArgs args;
  args.count = ids.num_elements();
  args.row = row.num_elements();
  args.limit = segments;
  if (args.count == 0) return;
  const CudaStep::Note note =
      detail::note_rows(context, "segment_ids", segments, " is not below the number of segments, ");
  const detail::SortedRows rows(
      context, ids, {.limit = segments, .drops_negative = true, .errors = note.slot, .kernel = note.kernel});
  if (sums.num_elements() == 0) return;
  args.update.variables[0] = sums.raw_data();
  args.update.gradient = data.raw_data();
  args.keys = static_cast<const std::uint64_t*>(rows.keys.raw_data());
  args.places = static_cast<const std::int64_t*>(rows.places.raw_data());
  const AnyTensor* const touched[] = {&rows.keys, &rows.places};
  launch(context, function, grid_for(args.count * args.row), &args, nullptr, touched);
}

}  // namespace dflow::cuda
