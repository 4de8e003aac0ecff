#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/array/one_hot.hpp>
#include <dflow/kernels/cuda/bodies/made.hpp>
#include <dflow/kernels/cuda/routines/copies.ipp>

namespace dflow::cuda {

namespace detail {

template <class Index>
struct OneHotOf {
  template <int bytes>
  using Body = OneHotBody<bytes, Index>;
};

}  // namespace detail

void mark_indices(KernelContext& context, int axis) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor& indices = context.input(0);
  AnyTensor& y = context.allocate_output(0, shape);
  if (y.num_elements() == 0) return;
  fill_output(context, y, context.input(3).raw_data());
  const OneHotArgs args{
      indices.num_elements(),      shape[axis], shape.num_elements(axis + 1, shape.rank()), indices.raw_data(),
      context.input(2).raw_data(), y.raw_data()};
  const KernelFunction* const function =
      visit_dtype<element_t<1, OneHot::TypeParams>>(indices.dtype(), [&]<class Index>() {
        return &detail::function_of_size<detail::OneHotOf<Index>::template Body>(size_of(y.dtype()));
      });
  launch(context, *function, grid_for(args.count), &args);
}

}  // namespace dflow::cuda
