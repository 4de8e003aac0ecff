#pragma once

#include <dflow/core/broadcast.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/arrays.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/shared/dim_runs.hpp>
#include <dflow/kernels/shared/forward_kernels.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/broadcast.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow {

namespace cuda {

/// Of kernels for all element types that a GPU's memory holds: strings are objects of the host.
struct NoStrings {
  static bool supports(const TypeArgs& types) { return types[0] != DType::string; }
};

namespace detail {

/// The body for elements of that size.
template <template <int> class Body>
const KernelFunction& function_of_size(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return kernel_function<Body<1>>();
    case 2:
      return kernel_function<Body<2>>();
    case 4:
      return kernel_function<Body<4>>();
    case 8:
      return kernel_function<Body<8>>();
    default:
      return kernel_function<Body<16>>();
  }
}

}  // namespace detail

/// Every element of `y`, an output, becomes *value, which is in the GPU's memory, or `constant` where that is null.
void fill_output(const KernelContext& context, AnyTensor& y, const void* value, const Bits<16>& constant = {});
/// All bytes of `y`, an output, become 0.
void clear_output(const KernelContext& context, AnyTensor& y);

/// Elements of an input or an output: from `first` on, so many apart along each dimension.
struct StridedElements {
  const AnyTensor* tensor = nullptr;
  std::int64_t first = 0;
  std::array<std::int64_t, max_rank> strides{};
};
/// Copies a box of elements, from and to `temporaries` too.
void copy_strided(const KernelContext& context, const Shape& extents, const StridedElements& from,
                  const StridedElements& to, std::span<const AnyTensor* const> temporaries = {});
/// Output 0, of shape `shape`, is inputs `first` and on side by side along `axis`.
void join_rows(KernelContext& context, int first, int axis, const Shape& shape);
/// The outputs, of shape `shape` each, are x cut into equal parts along `axis`.
void cut_rows(KernelContext& context, const AnyTensor& x, int axis, const Shape& shape);

}  // namespace cuda

template <>
struct Kernel<NoOp, Cuda> : detail::NoOpKernel {};
template <>
struct Kernel<Identity, Cuda> : detail::ForwardKernel {};
template <>
struct Kernel<StopGradient, Cuda> : detail::ForwardKernel {};

template <>
struct Kernel<Reshape, Cuda> : detail::ReshapeKernel {
  static constexpr std::uint64_t host_inputs = 2;
};
template <>
struct Kernel<ExpandDims, Cuda> : detail::ReshapeKernel {
  static constexpr std::uint64_t host_inputs = 2;
};
template <>
struct Kernel<Squeeze, Cuda> : detail::ReshapeKernel {};

template <>
struct Kernel<ShapeOf, Cuda> : detail::ShapeKernel {
  static constexpr std::uint64_t host_outputs = 1;
};
template <>
struct Kernel<RankOf, Cuda> : detail::RankKernel {
  static constexpr std::uint64_t host_outputs = 1;
};
template <>
struct Kernel<SizeOf, Cuda> : detail::SizeKernel {
  static constexpr std::uint64_t host_outputs = 1;
};

template <>
struct Kernel<ZerosLike, Cuda> : cuda::NoStrings {
  void operator()(KernelContext& context) const {
    const Shape shape = context.input(0).shape();
    cuda::clear_output(context, context.forward_or_allocate(0, 0, shape));
  }
};
template <>
struct Kernel<OnesLike, Cuda> {
  void operator()(KernelContext& context) const {
    const auto one = std::bit_cast<cuda::Bits<16>>(detail::one_of(context.output_dtype(0)));
    const Shape shape = context.input(0).shape();
    cuda::fill_output(context, context.forward_or_allocate(0, 0, shape), nullptr, one);
  }
};
template <>
struct Kernel<Fill, Cuda> : cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 1;

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    cuda::fill_output(context, context.allocate_output(0, shape), context.input(1).raw_data());
  }
};

template <>
struct Kernel<BroadcastTo, Cuda> : cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 2;

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const AnyTensor& x = context.input(0);
    if (x.num_elements() == shape.num_elements()) return context.set_output(0, x.reshaped(shape));
    AnyTensor& y = context.allocate_output(0, shape);
    cuda::copy_strided(context, shape, {&x, 0, broadcast_strides(x.shape(), shape)}, {&y, 0, row_major_strides(shape)});
  }
};

template <>
struct Kernel<Transpose, Cuda> : cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 2;

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const AnyTensor& x = context.input(0);
    const auto of_x = row_major_strides(x.shape());
    std::array<std::int64_t, max_rank> strides{};
    std::size_t to = 0;
    for (const std::int64_t axis : detail::SmallIntegers(context.input(1))) {
      strides[to++] = of_x[static_cast<std::size_t>(axis)];
    }
    AnyTensor& y = context.allocate_output(0, shape);
    cuda::copy_strided(context, shape, {&x, 0, strides}, {&y, 0, row_major_strides(shape)});
  }
};

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

template <>
struct Kernel<Concat, Cuda> : cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 1;

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    if (context.num_inputs() == 2) return context.set_output(0, context.input(1));
    const std::int64_t axis = context.input<std::int32_t>(0).scalar();
    cuda::join_rows(context, 1, detail::non_negative_axis(axis, shape.rank()), shape);
  }
};
template <>
struct Kernel<Pack, Cuda> : cuda::NoStrings {
  Pack::Attrs attrs;

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    if (context.num_inputs() == 1) return context.set_output(0, context.input(0).reshaped(shape));
    cuda::join_rows(context, 0, detail::non_negative_axis(attrs.axis, shape.rank()), shape);
  }
};
template <>
struct Kernel<Split, Cuda> : cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 1;

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const AnyTensor& x = context.input(1);
    if (context.num_outputs() == 1) return context.set_output(0, x);
    const std::int64_t axis = context.input<std::int32_t>(0).scalar();
    cuda::cut_rows(context, x, detail::non_negative_axis(axis, x.rank()), shape);
  }
};
template <>
struct Kernel<Unpack, Cuda> : cuda::NoStrings {
  Unpack::Attrs attrs;

  void operator()(KernelContext& context) const {
    if (context.num_outputs() == 0) return;
    const Shape shape = detail::inferred_shape(context);
    const AnyTensor& x = context.input(0);
    if (context.num_outputs() == 1) return context.set_output(0, x.reshaped(shape));
    cuda::cut_rows(context, x, detail::non_negative_axis(attrs.axis, x.rank()), shape);
  }
};

}  // namespace dflow
