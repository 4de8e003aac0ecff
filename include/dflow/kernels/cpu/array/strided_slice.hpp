#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/array/slice.hpp>
#include <dflow/ops/array/strided_slice.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace dflow {

namespace detail {

/// The box in a tensor of shape `x`, and the place of the box in the elements. Inputs 1, 2 and 3 of the kernel are
/// begin, end and strides.
struct StridedPlace {
  StridedBox box;
  std::array<std::int64_t, max_rank> strides{};  ///< in elements of x
  std::int64_t first = 0;

  StridedPlace(const KernelContext& context, const Shape& x, const StridedSliceAttrs& masks)
      : box(strided_box(
            x, static_cast<int>(context.input(1).num_elements()),
            {SmallIntegers(context.input(1)), SmallIntegers(context.input(2)), SmallIntegers(context.input(3))},
            masks)) {
    const auto whole = row_major_strides(x);
    for (int i = 0; i < x.rank(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      first += box.begin[i] * whole[at];
      strides[at] = box.stride[i] * whole[at];
    }
  }
  std::array<std::int64_t, max_rank> packed_strides() const { return row_major_strides(Shape(box.size.span())); }
};

struct StridedSliceKernel : SplitsUnlessStrings {
  StridedSliceAttrs attrs;

  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    const AnyTensor& x = context.input(0);
    if (shape.num_elements() == 0) return set_contiguous_part(context, 0, x, 0, shape);
    const StridedPlace place(context, x.shape(), attrs);
    const bool has_ones = std::ranges::all_of(place.box.stride, [](std::int64_t stride) { return stride == 1; });
    if (has_ones && is_contiguous_part(place.box.size.span(), x.shape())) {
      return set_contiguous_part(context, 0, x, place.first, shape);
    }
    AnyTensor& y = context.allocate_output(0, shape);
    strided_copy(context, x.dtype(), place.box.size.span(), element(x, place.first), place.strides, y.raw_data(),
                 place.packed_strides());
  }
};

struct StridedSliceGradKernel {
  static constexpr bool splits = true;
  StridedSliceAttrs attrs;

  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    const AnyTensor& dy = context.input(4);
    AnyTensor& y = context.allocate_output(0, shape);
    context.pool().parallel_for(
        shape.num_elements(), copy_cost_ns(y.dtype()),
        [&](std::int64_t begin, std::int64_t end) { clear_elements(y.dtype(), end - begin, element(y, begin)); });
    if (dy.num_elements() == 0) return;
    const StridedPlace place(context, shape, attrs);
    strided_copy(context, dy.dtype(), place.box.size.span(), dy.raw_data(), place.packed_strides(),
                 element(y, place.first), place.strides);
  }
};

}  // namespace detail

template <>
struct Kernel<StridedSlice, Cpu> : detail::StridedSliceKernel {};
template <>
struct Kernel<StridedSliceGrad, Cpu> : detail::StridedSliceGradKernel {};

}  // namespace dflow
