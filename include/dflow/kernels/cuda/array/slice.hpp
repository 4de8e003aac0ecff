#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/shared/dim_runs.hpp>
#include <dflow/ops/array/slice.hpp>

#include <cstddef>
#include <cstdint>

namespace dflow {

template <>
struct Kernel<Slice, Cuda> : cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 6;

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const AnyTensor& x = context.input(0);
    if (shape == x.shape()) return context.set_output(0, x);
    const detail::SmallIntegers begin(context.input(1));
    const auto strides = row_major_strides(x.shape());
    std::int64_t first = 0;
    for (int i = 0; i < shape.rank(); ++i) first += begin[i] * strides[static_cast<std::size_t>(i)];
    AnyTensor& y = context.allocate_output(0, shape);
    cuda::copy_strided(context, shape, {&x, first, strides}, {&y, 0, row_major_strides(shape)});
  }
};

template <>
struct Kernel<Pad, Cuda> : cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 2;

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const AnyTensor& x = context.input(0);
    if (shape == x.shape()) return context.set_output(0, x);
    const detail::SmallIntegers widths(context.input(1));
    const auto strides = row_major_strides(shape);
    std::int64_t first = 0;
    for (int i = 0; i < shape.rank(); ++i) first += widths[2 * i] * strides[static_cast<std::size_t>(i)];
    AnyTensor& y = context.allocate_output(0, shape);
    cuda::clear_output(context, y);
    cuda::copy_strided(context, x.shape(), {&x, 0, row_major_strides(x.shape())}, {&y, first, strides});
  }
};

}  // namespace dflow
