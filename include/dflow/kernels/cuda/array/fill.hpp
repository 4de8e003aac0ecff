#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/bodies/made.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/ops/array/fill.hpp>

#include <cstdint>

namespace dflow {

template <>
struct Kernel<Fill, Cuda> : cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 1;

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    cuda::fill_output(context, context.allocate_output(0, shape), context.input(1).raw_data());
  }
};

template <class T>
struct Kernel<Range, Cuda, T> {
  static constexpr std::uint64_t host_inputs = 7;

  void operator()(KernelContext& context) const {
    using Wide = typename cuda::RangeArgs<T>::Wide;
    AnyTensor& y = context.allocate_output(0, detail::inferred_shape(context));
    if (y.num_elements() == 0) return;
    const cuda::RangeArgs<T> args{y.num_elements(), static_cast<Wide>(context.input<T>(0).scalar()),
                                  static_cast<Wide>(context.input<T>(2).scalar()), static_cast<T*>(y.raw_data())};
    cuda::launch<cuda::RangeBody<T>>(context, cuda::grid_for(args.n), args);
  }
};

}  // namespace dflow
