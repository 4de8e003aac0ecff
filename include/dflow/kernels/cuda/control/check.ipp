#pragma once

#include <dflow/kernels/cuda/control/check.hpp>
#include <dflow/kernels/shared/position_text.hpp>

namespace dflow::cuda {

void check_finite(KernelContext& context, const std::string& message, const KernelFunction& function) {
  const AnyTensor& x = context.input(0);
  CheckFiniteArgs args;
  args.n = x.num_elements();
  if (args.n == 0) return;
  args.x = x.raw_data();
  const CudaStep::Note note = step_of(context).note(context, [message](const ErrorSlot& slot) {
    return Status::invalid_argument(dflow::detail::not_finite_text(
        message, (slot.detail & CheckFiniteArgs::has_nan) != 0, (slot.detail & CheckFiniteArgs::has_inf) != 0));
  });
  args.errors = note.slot;
  args.kernel = note.kernel;
  launch(context, function, grid_for(args.n), &args, note.slot);
}

}  // namespace dflow::cuda
