#pragma once

#include <dflow/kernels/cuda/routines/copies.hpp>

#include <cstddef>

namespace dflow::cuda {

void fill_output(const KernelContext& context, AnyTensor& y, const void* value, const Bits<16>& constant) {
  if (y.num_elements() == 0) return;
  const FillArgs args{y.num_elements(), value, constant, y.raw_data()};
  launch(context, detail::function_of_size<FillBody>(size_of(y.dtype())), grid_for(args.n), &args);
}

void clear_output(const KernelContext& context, AnyTensor& y) {
  if (y.bytes() == 0) return;
  DeviceCore& core = state_of(context).memory.core();
  core.require_ok(core.driver().fill(core.device(), y.raw_data(), 0, y.bytes(), core.compute()), "clearing a tensor");
}

void copy_strided(const KernelContext& context, const Shape& extents, const StridedElements& from,
                  const StridedElements& to, std::span<const AnyTensor* const> temporaries) {
  CopyArgs args;
  args.n = extents.num_elements();
  if (args.n == 0) return;
  for (int d = 0; d < extents.rank(); ++d) {
    if (extents[d] == 1) continue;
    const auto at = static_cast<std::size_t>(d);
    const int last = args.rank - 1;
    // Neighbours that lie one behind the other at both ends are one dimension.
    if (last >= 0 && args.from_strides[last] == from.strides[at] * extents[d] &&
        args.to_strides[last] == to.strides[at] * extents[d]) {
      args.extents[last] *= extents[d];
    } else {
      args.extents[args.rank++] = extents[d];
    }
    args.from_strides[args.rank - 1] = from.strides[at];
    args.to_strides[args.rank - 1] = to.strides[at];
  }
  const std::size_t bytes = size_of(from.tensor->dtype());
  args.from = static_cast<const std::byte*>(from.tensor->raw_data()) + static_cast<std::size_t>(from.first) * bytes;
  args.to = const_cast<std::byte*>(static_cast<const std::byte*>(to.tensor->raw_data())) +
            static_cast<std::size_t>(to.first) * bytes;
  launch(context, detail::function_of_size<CopyBody>(bytes), grid_for(args.n), &args, nullptr, temporaries);
}

void join_rows(KernelContext& context, int first, int axis, const Shape& shape) {
  AnyTensor& y = context.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  const std::int64_t outer = shape.num_elements(0, axis), width = shape.num_elements() / outer;
  std::int64_t at = 0;
  for (int i = first; i < context.num_inputs(); ++i) {
    const AnyTensor& x = context.input(i);
    const std::int64_t part = x.num_elements() / outer;
    copy_strided(context, {outer, part}, {&x, 0, {part, 1}}, {&y, at, {width, 1}});
    at += part;
  }
}

void cut_rows(KernelContext& context, const AnyTensor& x, int axis, const Shape& shape) {
  const std::int64_t outer = shape.num_elements(0, axis), count = context.num_outputs();
  const std::int64_t width = shape.num_elements() == 0 ? 0 : shape.num_elements() / outer;
  for (int i = 0; i < count; ++i) {
    AnyTensor& y = context.allocate_output(i, shape);
    if (width != 0) copy_strided(context, {outer, width}, {&x, i * width, {width * count, 1}}, {&y, 0, {width, 1}});
  }
}

}  // namespace dflow::cuda
