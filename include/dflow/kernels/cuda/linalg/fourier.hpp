#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/fourier.hpp>
#include <dflow/kernels/cuda/bodies/indices.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/ops/linalg/fourier.hpp>

#include <complex>
#include <cstdint>
#include <type_traits>

namespace dflow {

namespace cuda {

/// The kernels that transforms of one precision take.
struct FourierFunctions {
  const KernelFunction& scale;  ///< of real elements
  const KernelFunction& scale_complex;
  const KernelFunction& half_lines;
  const KernelFunction& to_complex;
  const KernelFunction& to_real;
  DType real, complex;
};
template <class R>
FourierFunctions fourier_functions() {
  using C = math::Complex<R>;
  return {kernel_function<ScaleBody<R>>(),   kernel_function<ScaleBody<C>>(),   kernel_function<HalfLinesBody<C>>(),
          kernel_function<CastBody<R, C>>(), kernel_function<CastBody<C, R>>(), dtype_of<R>,
          dtype_of<std::complex<R>>};
}

// The ops of the same names; lengths, and the shapes of gradients, are on the host. They are not recorded: a plan of
// the library has tables of its own.

void transform_complex(KernelContext& context, const FourierFunctions& functions, int rank, bool is_inverse);
void transform_real(KernelContext& context, const FourierFunctions& functions);
void transform_to_real(KernelContext& context, const FourierFunctions& functions);
void make_rfft_gradient(KernelContext& context, const FourierFunctions& functions);
void make_irfft_gradient(KernelContext& context, const FourierFunctions& functions);

namespace detail {

template <class Op, class C>
struct FourierKernel {
  static constexpr bool repeats = false;
  void operator()(KernelContext& context) const {
    transform_complex(context, fourier_functions<typename C::value_type>(), Op::fourier_rank, Op::is_inverse);
  }
};
template <class T>
struct RfftKernel {
  static constexpr bool repeats = false;
  static constexpr std::uint64_t host_inputs = 2;
  void operator()(KernelContext& context) const { transform_real(context, fourier_functions<T>()); }
};
template <class T>
struct IrfftKernel {
  static constexpr bool repeats = false;
  static constexpr std::uint64_t host_inputs = 2;
  void operator()(KernelContext& context) const { transform_to_real(context, fourier_functions<T>()); }
};

/// No other two types go together: the ops refuse them.
template <class T, class U>
concept SamePrecision = std::is_same_v<U, std::complex<T>>;

}  // namespace detail

}  // namespace cuda

template <class C>
struct Kernel<Fft, Cuda, C> : cuda::detail::FourierKernel<Fft, C> {};
template <class C>
struct Kernel<Fft2d, Cuda, C> : cuda::detail::FourierKernel<Fft2d, C> {};
template <class C>
struct Kernel<Fft3d, Cuda, C> : cuda::detail::FourierKernel<Fft3d, C> {};
template <class C>
struct Kernel<Ifft, Cuda, C> : cuda::detail::FourierKernel<Ifft, C> {};
template <class C>
struct Kernel<Ifft2d, Cuda, C> : cuda::detail::FourierKernel<Ifft2d, C> {};
template <class C>
struct Kernel<Ifft3d, Cuda, C> : cuda::detail::FourierKernel<Ifft3d, C> {};

template <class T, class U>
  requires cuda::detail::SamePrecision<T, U>
struct Kernel<Rfft, Cuda, T, U> : cuda::detail::RfftKernel<T> {};
template <class T, class U>
  requires cuda::detail::SamePrecision<T, U>
struct Kernel<Rfft2d, Cuda, T, U> : cuda::detail::RfftKernel<T> {};
template <class T, class U>
  requires cuda::detail::SamePrecision<T, U>
struct Kernel<Rfft3d, Cuda, T, U> : cuda::detail::RfftKernel<T> {};
template <class T, class U>
  requires cuda::detail::SamePrecision<T, U>
struct Kernel<Irfft, Cuda, T, U> : cuda::detail::IrfftKernel<T> {};
template <class T, class U>
  requires cuda::detail::SamePrecision<T, U>
struct Kernel<Irfft2d, Cuda, T, U> : cuda::detail::IrfftKernel<T> {};
template <class T, class U>
  requires cuda::detail::SamePrecision<T, U>
struct Kernel<Irfft3d, Cuda, T, U> : cuda::detail::IrfftKernel<T> {};

template <class T, class U>
  requires cuda::detail::SamePrecision<T, U>
struct Kernel<RfftGrad, Cuda, T, U> {
  static constexpr bool repeats = false;
  static constexpr std::uint64_t host_inputs = 6;
  void operator()(KernelContext& context) const { cuda::make_rfft_gradient(context, cuda::fourier_functions<T>()); }
};
template <class T, class U>
  requires cuda::detail::SamePrecision<T, U>
struct Kernel<IrfftGrad, Cuda, T, U> {
  static constexpr bool repeats = false;
  static constexpr std::uint64_t host_inputs = 6;
  void operator()(KernelContext& context) const { cuda::make_irfft_gradient(context, cuda::fourier_functions<T>()); }
};

}  // namespace dflow
