#pragma once

#include <dflow/core/broadcast.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/cuda/routines/reductions.hpp>
#include <dflow/ops/math/broadcast.hpp>

#include <cstdint>

namespace dflow {

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

template <class T>
struct Kernel<SumToShape, Cuda, T> {
  static constexpr std::uint64_t host_inputs = 2;
  void operator()(KernelContext& context) const {
    cuda::reduce_to_shape(context, cuda::reduction_code<cuda::detail::SumReduction, T>());
  }
};

}  // namespace dflow
