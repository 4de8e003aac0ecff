#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/shared/dim_runs.hpp>
#include <dflow/kernels/shared/host_kernels.hpp>
#include <dflow/ops/array/transpose.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace dflow {

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

template <class T>
struct Kernel<InvertPermutation, Cuda, T> : detail::InvertPermutationKernel<T> {
  static constexpr std::uint64_t host_inputs = 1, host_outputs = 1;
};

}  // namespace dflow
