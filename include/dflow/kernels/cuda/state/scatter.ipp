#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/routines/copies.ipp>
#include <dflow/kernels/cuda/routines/sorted_rows.hpp>
#include <dflow/kernels/cuda/state/scatter.hpp>
#include <dflow/kernels/cuda/state/variable.ipp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace dflow::cuda {

namespace detail {

/// Elements of a row of a variable that updates [indices..., row...] are for.
inline std::int64_t row_size_of(const KernelContext& context, const Shape& variable, const Shape& indices,
                                const Shape& updates) {
  if (variable.rank() == 0) context.fail("the variable is a scalar and has no rows");
  const Shape row = variable.subshape(1, variable.rank());
  if (updates != indices.concatenated(row)) {
    context.fail(str_cat("updates of shape ", updates.to_string(), " do not fit indices ", indices.to_string(),
                         " and a variable ", variable.to_string()));
  }
  return row.num_elements();
}

}  // namespace detail

void scatter_rows(KernelContext& context, DType dtype, const KernelFunction& function, const KernelFunction* non_zero) {
  VariableUpdate update({&dflow::detail::variable_input(context, 0, dtype)});
  const AnyTensor &indices = context.input(1), &updates = context.input(2);
  const Shape shape = update.value(0).shape();
  RowUpdateArgs args;
  args.repeats = updates.rank() == 0 && shape.rank() > 0;
  args.row = args.repeats ? shape.subshape(1, shape.rank()).num_elements()
                          : detail::row_size_of(context, shape, indices.shape(), updates.shape());
  args.count = indices.num_elements();
  args.limit = shape[0];
  if (args.count == 0) return;
  const CudaStep::Note note = detail::note_rows(context, "indices", args.limit, " is outside [0, ");
  const detail::SortedRows rows(context, indices, {.limit = args.limit, .errors = note.slot, .kernel = note.kernel});
  if (args.row == 0) return;
  if (non_zero != nullptr) {
    const NonZeroArgs divisors{updates.num_elements(), updates.raw_data(), note.slot, note.kernel};
    launch(context, *non_zero, grid_for(divisors.n), &divisors, note.slot);
  }
  AnyTensor& variable = update.writable(0, [&](const AnyTensor& value) { return copy_of(context, value); });
  args.update.variables[0] = variable.raw_data();
  args.update.gradient = updates.raw_data();
  args.update.errors = note.slot;
  args.keys = static_cast<const std::uint64_t*>(rows.keys.raw_data());
  args.places = static_cast<const std::int64_t*>(rows.places.raw_data());
  const AnyTensor* const touched[] = {&rows.keys, &rows.places, &variable};
  launch(context, function, grid_for(args.count * args.row), &args, note.slot, touched);
}

void update_variable_rows(KernelContext& context, DType dtype, const VariableUpdateCall& call,
                          const KernelFunction& function) {
  std::array<VariableState*, UpdateArgs::max_variables> states{};
  for (int i = 0; i < call.inputs.num_variables; ++i) {
    states[static_cast<std::size_t>(i)] = &dflow::detail::variable_input(context, i, dtype);
  }
  VariableUpdate update = detail::hold(states, call.inputs.num_variables);
  const AnyTensor &gradient = context.input(call.inputs.gradient), &indices = context.input(call.inputs.gradient + 1);
  const Shape shape = update.value(0).shape();
  for (int i = 1; i < call.inputs.num_variables; ++i) {
    dflow::detail::require_same_shape(context, update.value(0), update.value(static_cast<std::size_t>(i)), "slot");
  }
  RowUpdateArgs args;
  args.row = detail::row_size_of(context, shape, indices.shape(), gradient.shape());
  args.count = indices.num_elements();
  args.limit = shape[0];
  args.update.gradient = gradient.raw_data();
  args.update.use_nesterov = call.use_nesterov;
  detail::set_factors(context, call, args.update);
  if (args.count == 0) return;
  const CudaStep::Note note = detail::note_rows(context, "indices", args.limit, " is outside [0, ");
  const detail::SortedRows rows(context, indices, {.limit = args.limit, .errors = note.slot, .kernel = note.kernel});
  if (args.row == 0) return;
  args.update.errors = note.slot;
  args.keys = static_cast<const std::uint64_t*>(rows.keys.raw_data());
  args.places = static_cast<const std::int64_t*>(rows.places.raw_data());
  std::array<const AnyTensor*, UpdateArgs::max_variables + 2> touched{&rows.keys, &rows.places};
  for (int i = 0; i < call.inputs.num_variables; ++i) {
    AnyTensor& variable =
        update.writable(static_cast<std::size_t>(i), [&](const AnyTensor& value) { return copy_of(context, value); });
    args.update.variables[i] = variable.raw_data();
    touched[static_cast<std::size_t>(i) + 2] = &variable;
  }
  launch(context, function, grid_for(args.count * args.row), &args, note.slot,
         {touched.data(), static_cast<std::size_t>(call.inputs.num_variables) + 2});
}

}  // namespace dflow::cuda
