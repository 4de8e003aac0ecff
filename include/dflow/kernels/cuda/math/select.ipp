#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/bodies/indices.hpp>
#include <dflow/kernels/cuda/math/select.hpp>

namespace dflow::cuda {

void select_elements(KernelContext& context) {
  const AnyTensor &condition = context.input(0), &a = context.input(1), &b = context.input(2);
  const Shape shape = a.shape();
  const bool by_rows = condition.rank() == 1 && shape.rank() > 0 && condition.dim(0) == shape.dim(0);
  if (!(b.shape() == shape)) {
    context.fail(
        str_cat("branches of shapes ", shape.to_string(), " and ", b.shape().to_string(), " do not go together"));
  }
  if (condition.rank() != 0 && !by_rows && !(condition.shape() == shape)) {
    context.fail(str_cat("condition and branches of shapes ", condition.shape().to_string(), " and ", shape.to_string(),
                         " do not go together"));
  }
  SelectArgs args;
  args.n = shape.num_elements();
  args.row = condition.num_elements() == 0 ? 1 : args.n / condition.num_elements();
  args.condition = static_cast<const bool*>(condition.raw_data());
  args.a = a.raw_data();
  args.b = b.raw_data();
  AnyTensor& y = context.forward_or_allocate(context.owns_input(1) ? 1 : 2, 0, shape);
  if (args.n == 0) return;
  args.y = y.raw_data();
  launch(context, detail::function_of_size<SelectBody>(size_of(y.dtype())), grid_for(args.n), &args);
}

}  // namespace dflow::cuda
