#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/tile.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow {

namespace detail {

struct TileKernel : SplitsUnlessStrings {
  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    const AnyTensor& x = context.input(0);
    if (shape == x.shape()) return context.set_output(0, x);
    AnyTensor& y = context.allocate_output(0, shape);
    if (shape.num_elements() == 0) return;
    const Loops loops(x.shape(), SmallIntegers(context.input(1)), shape);
    // A copy takes max_rank loops. This function walks the outer loops beyond that number.
    const std::size_t outside = loops.count > max_rank ? loops.count - max_rank : 0, inside = loops.count - outside;
    std::int64_t copies = 1;
    for (std::size_t i = 0; i < outside; ++i) copies *= loops.extents[i];
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      std::int64_t left = copy, from = 0, to = 0;
      for (std::size_t i = outside; i-- > 0; left /= loops.extents[i]) {
        from += left % loops.extents[i] * loops.from[i];
        to += left % loops.extents[i] * loops.to[i];
      }
      strided_copy(context, x.dtype(), std::span(loops.extents).subspan(outside, inside), element(x, from),
                   std::span(loops.from).subspan(outside, inside), element(y, to),
                   std::span(loops.to).subspan(outside, inside));
    }
  }

 private:
  /// Two loops per dimension, without those that run once: over the repeats, which read the same again, and over the
  /// elements.
  struct Loops {
    std::array<std::int64_t, std::size_t{2} * max_rank> extents{}, from{}, to{};
    std::size_t count = 0;

    Loops(const Shape& x, const SmallIntegers& multiples, const Shape& y) {
      const auto x_strides = row_major_strides(x), y_strides = row_major_strides(y);
      for (int i = 0; i < x.rank(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        append(multiples[i], 0, x[i] * y_strides[at]);
        append(x[i], x_strides[at], y_strides[at]);
      }
    }
    void append(std::int64_t extent, std::int64_t from_stride, std::int64_t to_stride) {
      if (extent == 1) return;
      extents[count] = extent;
      from[count] = from_stride;
      to[count++] = to_stride;
    }
  };
};

}  // namespace detail

template <>
struct Kernel<Tile, Cpu> : detail::TileKernel {};

}  // namespace dflow
