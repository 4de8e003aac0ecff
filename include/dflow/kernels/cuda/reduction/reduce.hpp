#pragma once

#include <dflow/kernels/cuda/routines/reductions.hpp>
#include <dflow/kernels/shared/reduced_shape_kernel.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <cstdint>

namespace dflow {

namespace cuda {

template <class R, class T>
struct ReduceKernel {
  static constexpr std::uint64_t host_inputs = 2;
  void operator()(KernelContext& context) const { reduce_axes(context, reduction_code<R, T>()); }
};

template <class T, bool is_max>
struct ArgKernel {
  static constexpr std::uint64_t host_inputs = 2;
  void operator()(KernelContext& context) const { find_extreme(context, kernel_function<ArgBody<T, is_max>>()); }
};

}  // namespace cuda

template <class T>
struct Kernel<Sum, Cuda, T> : cuda::ReduceKernel<cuda::detail::SumReduction, T> {};
template <class T>
struct Kernel<Mean, Cuda, T> : cuda::ReduceKernel<cuda::detail::MeanReduction, T> {};
template <class T>
struct Kernel<Prod, Cuda, T> : cuda::ReduceKernel<cuda::detail::ProdReduction, T> {};
template <class T>
struct Kernel<Max, Cuda, T> : cuda::ReduceKernel<cuda::detail::ExtremeReduction<Maximum>, T> {};
template <class T>
struct Kernel<Min, Cuda, T> : cuda::ReduceKernel<cuda::detail::ExtremeReduction<Minimum>, T> {};
template <class T>
struct Kernel<All, Cuda, T> : cuda::ReduceKernel<cuda::detail::LogicalReduction<true>, T> {};
template <class T>
struct Kernel<Any, Cuda, T> : cuda::ReduceKernel<cuda::detail::LogicalReduction<false>, T> {};
template <class T>
struct Kernel<ArgMax, Cuda, T> : cuda::ArgKernel<T, true> {};
template <class T>
struct Kernel<ArgMin, Cuda, T> : cuda::ArgKernel<T, false> {};

template <class T>
struct Kernel<ReducedShape, Cuda, T> : detail::ReducedShapeKernel<T> {
  static constexpr std::uint64_t host_inputs = 3, host_outputs = 1;
};

}  // namespace dflow
