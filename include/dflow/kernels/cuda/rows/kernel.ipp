#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/array/kernel.ipp>
#include <dflow/kernels/cuda/rows/kernel.hpp>
#include <dflow/kernels/cuda/rows/sorts.hpp>
#include <dflow/kernels/cuda/state/kernel.ipp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace dflow::cuda {

namespace detail {

/// The rows of a call sorted by their indices, in memory that later work of the compute stream may use.
struct SortedRows {
  AnyTensor keys, places;  ///< uint64, int64 [count]

  /// Precondition: there are indices.
  SortedRows(const KernelContext& context, const AnyTensor& indices, RowKeysArgs args) {
    const Shape shape{indices.num_elements()};
    const AnyTensor given = context.allocate_temporary(DType::uint64, shape);
    const AnyTensor numbers = context.allocate_temporary(DType::int64, shape);
    args.count = shape[0];
    args.indices = indices.raw_data();
    args.keys = static_cast<std::uint64_t*>(const_cast<void*>(given.raw_data()));
    args.places = static_cast<std::int64_t*>(const_cast<void*>(numbers.raw_data()));
    const AnyTensor* const temporaries[] = {&given, &numbers};
    const KernelFunction& function = indices.dtype() == DType::int32 ? kernel_function<RowKeysBody<std::int32_t>>()
                                                                     : kernel_function<RowKeysBody<std::int64_t>>();
    launch(context, function, grid_for(args.count), &args, args.errors, temporaries);
    keys = context.allocate_temporary(DType::uint64, shape);
    places = context.allocate_temporary(DType::int64, shape);
    SortCall call;
    call.count = args.count;
    call.key_bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(args.limit))));
    call.keys = args.keys;
    call.values = args.places;
    call.sorted_keys = static_cast<std::uint64_t*>(keys.raw_data());
    call.sorted_values = static_cast<std::int64_t*>(places.raw_data());
    DeviceCore& core = state_of(context).memory.core();
    std::size_t bytes = 0;
    core.require_ok(core.driver().sorts().sort_workspace(core.device(), call.count, call.key_bits, bytes),
                    "asking for the memory of a sort");
    const AnyTensor workspace = context.allocate_temporary(DType::uint8, {static_cast<std::int64_t>(bytes)});
    MemoryUses uses(context);
    uses.add(given, false);
    uses.add(numbers, false);
    uses.add(keys, true);
    uses.add(places, true);
    uses.add(workspace, true);
    core.require_ok(core.driver().sorts().sort_pairs(core.device(), call, const_cast<void*>(workspace.raw_data()),
                                                     bytes, uses.all(), core.compute()),
                    "sorting rows");
  }
};

/// What the kernels of rows note.
inline CudaStep::Note note_rows(const KernelContext& context, std::string_view what, std::int64_t limit,
                                std::string_view outside) {
  return step_of(context).note(context, [what, limit, outside](const ErrorSlot& slot) {
    if (slot.detail == 1) return Status::invalid_argument("integer division by zero");
    std::int64_t index = 0;
    std::memcpy(&index, slot.values[0], sizeof(index));
    return Status::invalid_argument(
        str_cat(what, "[", slot.position, "] = ", index, outside, limit, outside.ends_with("[0, ") ? ")" : ""));
  });
}

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
  for (int i = 0; i < call.num_variables; ++i) {
    states[static_cast<std::size_t>(i)] = &dflow::detail::variable_input(context, i, dtype);
  }
  VariableUpdate update = detail::hold(states, call.num_variables);
  const AnyTensor &gradient = context.input(call.gradient), &indices = context.input(call.gradient + 1);
  const Shape shape = update.value(0).shape();
  for (int i = 1; i < call.num_variables; ++i) {
    dflow::detail::require_same_shape(context, update.value(0), update.value(static_cast<std::size_t>(i)), "slot");
  }
  RowUpdateArgs args;
  args.row = detail::row_size_of(context, shape, indices.shape(), gradient.shape());
  args.count = indices.num_elements();
  args.limit = shape[0];
  args.update.gradient = gradient.raw_data();
  args.update.use_nesterov = call.use_nesterov;
  std::size_t factor = 0;
  for (const int input : call.factors) {
    dflow::detail::require_scalar(context, input);
    args.update.factors[factor++] = context.input(input).raw_data();
  }
  if (args.count == 0) return;
  const CudaStep::Note note = detail::note_rows(context, "indices", args.limit, " is outside [0, ");
  const detail::SortedRows rows(context, indices, {.limit = args.limit, .errors = note.slot, .kernel = note.kernel});
  if (args.row == 0) return;
  args.update.errors = note.slot;
  args.keys = static_cast<const std::uint64_t*>(rows.keys.raw_data());
  args.places = static_cast<const std::int64_t*>(rows.places.raw_data());
  std::array<const AnyTensor*, UpdateArgs::max_variables + 2> touched{&rows.keys, &rows.places};
  for (int i = 0; i < call.num_variables; ++i) {
    AnyTensor& variable =
        update.writable(static_cast<std::size_t>(i), [&](const AnyTensor& value) { return copy_of(context, value); });
    args.update.variables[i] = variable.raw_data();
    touched[static_cast<std::size_t>(i) + 2] = &variable;
  }
  launch(context, function, grid_for(args.count * args.row), &args, note.slot,
         {touched.data(), static_cast<std::size_t>(call.num_variables) + 2});
}

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
