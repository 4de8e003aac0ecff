#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/driver/sorts.hpp>
#include <dflow/kernels/cuda/routines/sorted_rows.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dflow::cuda::detail {

SortedRows::SortedRows(const KernelContext& context, const AnyTensor& indices, RowKeysArgs args) {
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
  core.require_ok(core.driver().sorts().sort_pairs(core.device(), call, const_cast<void*>(workspace.raw_data()), bytes,
                                                   uses.all(), core.compute()),
                  "sorting rows");
}

CudaStep::Note note_rows(const KernelContext& context, std::string_view what, std::int64_t limit,
                         std::string_view outside) {
  return step_of(context).note(context, [what, limit, outside](const ErrorSlot& slot) {
    if (slot.detail == 1) return Status::invalid_argument("integer division by zero");
    std::int64_t index = 0;
    std::memcpy(&index, slot.values[0], sizeof(index));
    return Status::invalid_argument(
        str_cat(what, "[", slot.position, "] = ", index, outside, limit, outside.ends_with("[0, ") ? ")" : ""));
  });
}

}  // namespace dflow::cuda::detail
