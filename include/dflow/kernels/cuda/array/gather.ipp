#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/array/gather.hpp>
#include <dflow/kernels/cuda/bodies/indices.hpp>
#include <dflow/kernels/shared/position_text.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace dflow::cuda {

namespace detail {
template <class Index>
struct GatherOf {
  template <int bytes>
  using Body = GatherBody<bytes, Index>;
};
}  // namespace detail

void gather_rows(KernelContext& context) {
  const AnyTensor &params = context.input(0), &indices = context.input(1);
  const Shape shape = dflow::detail::inferred_shape(context);
  AnyTensor& y = context.allocate_output(0, shape);
  GatherArgs args;
  args.count = indices.num_elements();
  args.row = params.shape().num_elements(1, params.rank());
  args.limit = params.dim(0);
  if (args.count == 0) return;
  args.params = params.raw_data();
  args.indices = indices.raw_data();
  args.y = y.raw_data();
  const CudaStep::Note note =
      step_of(context).note(context, [of_indices = indices.shape(), of_params = params.shape()](const ErrorSlot& slot) {
        std::int64_t index = 0;
        std::memcpy(&index, slot.values[0], sizeof(index));
        return Status::invalid_argument(dflow::detail::bad_gather_index(slot.position, of_indices, index, of_params));
      });
  args.errors = note.slot;
  args.kernel = note.kernel;
  const std::size_t bytes = size_of(params.dtype());
  launch(context,
         indices.dtype() == DType::int32 ? detail::function_of_size<detail::GatherOf<std::int32_t>::Body>(bytes)
                                         : detail::function_of_size<detail::GatherOf<std::int64_t>::Body>(bytes),
         grid_for(args.count * std::max<std::int64_t>(args.row, 1)), &args, note.slot);
}

}  // namespace dflow::cuda
