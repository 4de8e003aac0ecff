#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/reductions.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/elementwise/formulas.hpp>
#include <dflow/kernels/shared/dim_runs.hpp>
#include <dflow/kernels/shared/reduced_shape_kernel.hpp>
#include <dflow/ops/math/broadcast.hpp>
#include <dflow/ops/nn/bias.hpp>
#include <dflow/ops/reduction/add_n.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <cstdint>
#include <type_traits>

namespace dflow {

namespace cuda {

/// The two kernels of a reduction for one element type.
struct ReductionCode {
  const KernelFunction& (*by_thread)() = nullptr;
  const KernelFunction& (*by_block)() = nullptr;
};
template <class R, class T>
constexpr ReductionCode reduction_code() {
  using E = DeviceElement<T>;
  return {&kernel_function<ReduceByThreadBody<R, E>>, &kernel_function<ReduceByBlockBody<R, E>>};
}

/// Output 0 is input 0 reduced over the axes in input 1.
void reduce_axes(KernelContext& context, const ReductionCode& code);
/// Output 0 is input 0 reduced to the shape in input 1, which broadcasts to that of input 0.
void reduce_to_shape(KernelContext& context, const ReductionCode& code);
/// Output 0 [channels] is input 0 [..., channels], of rank 2 or more, reduced over all dimensions but the last.
void reduce_to_channels(KernelContext& context, const ReductionCode& code);
/// Output 0 is the position of an extreme of input 0 along the axis in input 1.
void find_extreme(KernelContext& context, const KernelFunction& function);
/// Output 0 is the sum of all inputs.
void add_inputs(KernelContext& context, const KernelFunction& function);

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

template <class T>
struct Kernel<AddN, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::add_inputs(context, cuda::kernel_function<cuda::AddNBody<cuda::DeviceElement<T>>>());
  }
  static const Formula* formula(int num_inputs) { return cuda::sum_formula(num_inputs); }
};

template <class T>
struct Kernel<SumToShape, Cuda, T> {
  static constexpr std::uint64_t host_inputs = 2;
  void operator()(KernelContext& context) const {
    cuda::reduce_to_shape(context, cuda::reduction_code<cuda::detail::SumReduction, T>());
  }
};

template <class T>
struct Kernel<BiasAddGrad, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::reduce_to_channels(context, cuda::reduction_code<cuda::detail::SumReduction, T>());
  }
};

}  // namespace dflow
