#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/array/index_kernel.hpp>
#include <dflow/kernels/shared/position_text.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace dflow::cuda {

const KernelFunction& cast_function(const TypeArgs& types) {
  return *visit_dtype<element_t<0, Cast::TypeParams>>(types[0], [&]<class From>() {
    return visit_dtype<element_t<1, Cast::TypeParams>>(
        types[1], []<class To>() { return &kernel_function<CastBody<DeviceElement<From>, DeviceElement<To>>>(); });
  });
}

void cast_elements(KernelContext& context, const KernelFunction& function) {
  const AnyTensor& x = context.input(0);
  AnyTensor& y = context.allocate_output(0, x.shape());
  if (y.num_elements() == 0) return;
  const CastArgs args{y.num_elements(), x.raw_data(), y.raw_data()};
  launch(context, function, grid_for(args.n), &args);
}

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
