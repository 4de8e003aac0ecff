#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/shared/dim_runs.hpp>
#include <dflow/kernels/shared/host_kernels.hpp>
#include <dflow/ops/array/concat.hpp>

#include <cstdint>

namespace dflow {

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

template <class T>
struct Kernel<ConcatOffset, Cuda, T> : detail::ConcatOffsetKernel<T> {
  static constexpr std::uint64_t host_inputs = 3, host_outputs = 1;
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
