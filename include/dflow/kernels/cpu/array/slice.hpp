#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/ops/array/slice.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow {

namespace detail {

/// Whether a part of a tensor has dimensions of 1, then one dimension that may be cut, then whole dimensions.
inline bool is_contiguous_part(std::span<const std::int64_t> part, const Shape& whole) {
  std::size_t i = 0;
  while (i < part.size() && part[i] == 1) ++i;
  for (++i; i < part.size(); ++i) {
    if (part[i] != whole[static_cast<int>(i)]) return false;
  }
  return true;
}

struct SliceKernel : SplitsUnlessStrings {
  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    const AnyTensor& x = context.input(0);
    const SmallIntegers begin(context.input(1));
    const auto strides = row_major_strides(x.shape());
    std::int64_t first = 0;
    for (int i = 0; i < shape.rank(); ++i) first += begin[i] * strides[static_cast<std::size_t>(i)];
    if (shape.num_elements() == 0 || is_contiguous_part(shape.dims(), x.shape())) {
      return set_contiguous_part(context, 0, x, shape.num_elements() == 0 ? 0 : first, shape);
    }
    AnyTensor& y = context.allocate_output(0, shape);
    strided_copy(context, x.dtype(), shape.dims(), element(x, first), strides, y.raw_data(), row_major_strides(shape));
  }
};

struct PadKernel {
  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    const AnyTensor& x = context.input(0);
    if (shape == x.shape()) return context.set_output(0, x);
    const SmallIntegers widths(context.input(1));
    AnyTensor& y = context.allocate_output(0, shape);
    context.pool().parallel_for(
        shape.num_elements(), copy_cost_ns(y.dtype()),
        [&](std::int64_t begin, std::int64_t end) { clear_elements(y.dtype(), end - begin, element(y, begin)); });
    const auto strides = row_major_strides(shape);
    std::int64_t first = 0;
    for (int i = 0; i < shape.rank(); ++i) first += widths[2 * i] * strides[static_cast<std::size_t>(i)];
    if (x.num_elements() == 0) return;
    strided_copy(context, x.dtype(), x.shape().dims(), x.raw_data(), row_major_strides(x.shape()), element(y, first),
                 strides);
  }
};

}  // namespace detail

template <>
struct Kernel<Slice, Cpu> : detail::SliceKernel {};
template <>
struct Kernel<Pad, Cpu> : detail::PadKernel {};

}  // namespace dflow
