#pragma once

#include <dflow/kernels/cuda/reduction/prod_gradient.hpp>
#include <dflow/kernels/cuda/routines/reductions.ipp>

#include <algorithm>
#include <array>

namespace dflow::cuda {

void make_of_others(KernelContext& context, const ReductionCode& code, std::size_t part_bytes) {
  const Shape shape = dflow::detail::inferred_shape(context);
  AnyTensor& y = context.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  AnyTensor before = context.allocate_temporary(
      DType::uint8, {checked_mul(shape.num_elements(), static_cast<std::int64_t>(part_bytes))});
  OthersArgs args;
  args.groups = detail::reduce_args(dflow::detail::DimRuns(shape, context.input(1)));
  args.groups.x = context.input(0).raw_data();
  args.groups.y = y.raw_data();
  args.dy = context.num_inputs() > 2 ? context.input(2).raw_data() : nullptr;
  args.before = before.raw_data();
  const std::array<const AnyTensor*, 1> temporaries{&before};
  constexpr std::int64_t few_elements = 64, most_blocks = 1 << 16;
  if (args.groups.reduced < few_elements) {
    return launch(context, code.by_thread(), grid_for(args.groups.outputs), &args, nullptr, temporaries);
  }
  launch(context, code.by_block(),
         {static_cast<std::uint32_t>(std::min(args.groups.outputs, most_blocks)),
          OthersByBlockBody<detail::OtherProducts<float>, float>::threads},
         &args, nullptr, temporaries);
}

}  // namespace dflow::cuda
