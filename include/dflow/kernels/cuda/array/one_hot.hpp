#pragma once

#include <dflow/kernels/cuda/bodies/made.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/shared/host_kernels.hpp>
#include <dflow/ops/array/one_hot.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/linalg/band.hpp>

#include <cstdint>
#include <string>

namespace dflow {

namespace cuda {

/// Output 0, whose dimension `axis` is new: the elements that the indices, input 0, choose are marked.
void mark_indices(KernelContext& context, int axis);
/// Output 0: input 0, with 0 outside of the band that inputs 1 and 2 say.
void keep_band(KernelContext& context);
/// Input 0 holds neither NaN nor Inf; where it does the step fails.
void check_finite(KernelContext& context, const std::string& message, const KernelFunction& function);
/// Output 0 [..., n, n] has input 0 [..., n] as its diagonals, and 0 elsewhere.
void make_diagonal(KernelContext& context);
/// Output 0 [..., n]: the diagonals of input 0.
void take_diagonal(KernelContext& context);
/// Output 0: input 0 with the diagonals of input 1.
void set_diagonal(KernelContext& context);

}  // namespace cuda

template <>
struct Kernel<EnsureShape, Cuda> : detail::EnsureShapeKernel {};
template <>
struct Kernel<Assert, Cuda> : detail::AssertKernel {
  static constexpr std::uint64_t host_inputs = 3;
};
template <class T>
struct Kernel<ConcatOffset, Cuda, T> : detail::ConcatOffsetKernel<T> {
  static constexpr std::uint64_t host_inputs = 3, host_outputs = 1;
};
template <class T>
struct Kernel<InvertPermutation, Cuda, T> : detail::InvertPermutationKernel<T> {
  static constexpr std::uint64_t host_inputs = 1, host_outputs = 1;
};

template <class T>
struct Kernel<CheckNumerics, Cuda, T> {
  CheckNumerics::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::check_finite(context, attrs.message, cuda::kernel_function<cuda::CheckFiniteBody<T>>());
    context.set_output(0, context.input(0));
  }
};

template <>
struct Kernel<OneHot, Cuda> : cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 2;
  OneHot::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::mark_indices(context, attrs.axis == -1 ? context.input(0).rank() : static_cast<int>(attrs.axis));
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

template <>
struct Kernel<MatrixBandPart, Cuda> {
  static constexpr std::uint64_t host_inputs = 6;

  void operator()(KernelContext& context) const { cuda::keep_band(context); }
};
template <>
struct Kernel<MatrixDiag, Cuda> {
  void operator()(KernelContext& context) const { cuda::make_diagonal(context); }
};
template <>
struct Kernel<MatrixDiagPart, Cuda> {
  void operator()(KernelContext& context) const { cuda::take_diagonal(context); }
};
template <>
struct Kernel<MatrixSetDiag, Cuda> {
  void operator()(KernelContext& context) const { cuda::set_diagonal(context); }
};

}  // namespace dflow
