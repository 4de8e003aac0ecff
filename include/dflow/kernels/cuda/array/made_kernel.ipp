#pragma once

#include <dflow/kernels/cuda/array/kernel.ipp>
#include <dflow/kernels/cuda/array/made_kernel.hpp>
#include <dflow/kernels/shared/position_text.hpp>

#include <algorithm>
#include <cstdint>

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

void keep_band(KernelContext& context) {
  const std::int64_t lower = dflow::detail::SmallIntegers(context.input(1))[0];
  const std::int64_t upper = dflow::detail::SmallIntegers(context.input(2))[0];
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor& x = context.input(0);
  BandArgs args;
  args.n = shape.num_elements();
  args.rows = shape[shape.rank() - 2];
  args.columns = shape[shape.rank() - 1];
  args.lower = lower < 0 ? args.rows : lower;
  args.upper = upper < 0 ? args.columns : upper;
  args.x = x.raw_data();
  const std::size_t bytes = size_of(x.dtype());
  AnyTensor& y = context.forward_or_allocate(0, 0, shape);
  if (args.n == 0) return;
  args.y = y.raw_data();
  launch(context, detail::function_of_size<BandBody>(bytes), grid_for(args.n), &args);
}

namespace detail {

/// The main diagonals of matrices of that shape, as many as there are.
struct Diagonals {
  explicit Diagonals(const Shape& shape)
      : matrix(shape[shape.rank() - 2] * shape[shape.rank() - 1]),
        step(shape[shape.rank() - 1] + 1),
        length(std::min(shape[shape.rank() - 2], shape[shape.rank() - 1])),
        extents({shape.num_elements(0, shape.rank() - 2), length}) {}

  StridedElements in(const AnyTensor& matrices) const { return {&matrices, 0, {matrix, step}}; }
  StridedElements alone(const AnyTensor& diagonals) const { return {&diagonals, 0, {length, 1}}; }

  const std::int64_t matrix, step, length;
  const Shape extents;
};

}  // namespace detail

void make_diagonal(KernelContext& context) {
  const Shape shape = dflow::detail::inferred_shape(context);
  AnyTensor& y = context.allocate_output(0, shape);
  if (y.num_elements() == 0) return;
  clear_output(context, y);
  const detail::Diagonals of(shape);
  copy_strided(context, of.extents, of.alone(context.input(0)), of.in(y));
}

void take_diagonal(KernelContext& context) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor& x = context.input(0);
  AnyTensor& y = context.allocate_output(0, shape);
  if (y.num_elements() == 0) return;
  const detail::Diagonals of(x.shape());
  copy_strided(context, of.extents, of.in(x), of.alone(y));
}

void set_diagonal(KernelContext& context) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor& x = context.input(0);
  AnyTensor& y = context.allocate_output(0, shape);
  if (y.num_elements() == 0) return;
  const detail::Diagonals of(shape);
  const Shape all{shape.num_elements()};
  copy_strided(context, all, {&x, 0, {1}}, {&y, 0, {1}});
  copy_strided(context, of.extents, of.alone(context.input(1)), of.in(y));
}

}  // namespace dflow::cuda
