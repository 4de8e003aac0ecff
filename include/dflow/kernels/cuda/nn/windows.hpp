#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/bodies/indices.hpp>
#include <dflow/kernels/cuda/bodies/windows.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/cuda/routines/products.hpp>
#include <dflow/kernels/shared/window_sizes.hpp>
#include <dflow/ops/nn/conv2d.hpp>
#include <dflow/ops/nn/pool2d.hpp>

#include <cstdint>

namespace dflow {

namespace cuda {

// cuDNN computes a convolution if it is there and has a way within `CudaState::convolution_workspace_bytes`. Else the
// convolution is the product of the gathered windows with the filter. The windows that the filter meets are gathered
// in parts of at most the given number of bytes. A part has at least one place, or one image for gradients of images.

/// Output 0 = conv2d(input 0, input 1), with the bias and the relu of `epilogue` where it has any.
void convolve(KernelContext& context, const Conv2DAttrs& attrs, const RowProduct& epilogue = {});
/// The transpose in the images: output 0 from the filter, input 1, and places, input 2.
void convolve_backward_input(KernelContext& context, const Conv2DAttrs& attrs, const KernelFunction& images);
/// The transpose in the filter: output 0 from the images, input 0, and places, input 2. `narrow` casts float to
/// elements of 16 bits, for the 16-bit types.
void convolve_backward_filter(KernelContext& context, const Conv2DAttrs& attrs, const KernelFunction& narrow);

/// Output 0, one for each place of the windows over input 0; `values` is the input that the kernel reads besides, or
/// -1.
void pool_places(KernelContext& context, const Pool2DAttrs& attrs, const KernelFunction& function, int values = -1);
/// Output 0, images, of the places that input `values` has.
void pool_images(KernelContext& context, const Pool2DAttrs& attrs, const KernelFunction& function, int values);
/// The same, where `winners` finds which elements of input 0 the places have.
void pool_winners(KernelContext& context, const Pool2DAttrs& attrs, const KernelFunction& winners,
                  const KernelFunction& function, int values);

}  // namespace cuda

template <class T>
struct Kernel<Conv2D, Cuda, T> {
  Conv2D::Attrs attrs;

  void operator()(KernelContext& context) const { cuda::convolve(context, attrs); }
};
template <class T>
struct Kernel<Conv2DBackpropInput, Cuda, T> {
  static constexpr std::uint64_t host_inputs = 1;
  Conv2D::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::convolve_backward_input(context, attrs, cuda::kernel_function<cuda::ImagesBody<T>>());
  }
};
template <class T>
struct Kernel<Conv2DBackpropFilter, Cuda, T> {
  static constexpr std::uint64_t host_inputs = 2;
  Conv2D::Attrs attrs;

  void operator()(KernelContext& context) const {
    cuda::convolve_backward_filter(context, attrs, cuda::kernel_function<cuda::CastBody<float, T>>());
  }
};

template <class T>
struct Kernel<MaxPool, Cuda, T> {
  Pool2DAttrs attrs;

  void operator()(KernelContext& context) const {
    cuda::pool_places(context, attrs, cuda::kernel_function<cuda::MaxPoolBody<T>>());
  }
};
template <class T>
struct Kernel<MaxPoolGrad, Cuda, T> {
  Pool2DAttrs attrs;

  void operator()(KernelContext& context) const {
    cuda::pool_winners(context, attrs, cuda::kernel_function<cuda::WinnersBody<T>>(),
                       cuda::kernel_function<cuda::MaxPoolGradBody<T>>(), 2);
  }
};
template <class T>
struct Kernel<MaxPoolGradGrad, Cuda, T> {
  Pool2DAttrs attrs;

  void operator()(KernelContext& context) const {
    cuda::pool_places(context, attrs, cuda::kernel_function<cuda::MaxPoolGradGradBody<T>>(), 2);
  }
};
template <class T>
struct Kernel<AvgPool, Cuda, T> {
  Pool2DAttrs attrs;

  void operator()(KernelContext& context) const {
    cuda::pool_places(context, attrs, cuda::kernel_function<cuda::AvgPoolBody<T>>());
  }
};
template <class T>
struct Kernel<AvgPoolGrad, Cuda, T> {
  static constexpr std::uint64_t host_inputs = 1;
  Pool2DAttrs attrs;

  void operator()(KernelContext& context) const {
    cuda::pool_images(context, attrs, cuda::kernel_function<cuda::AvgPoolGradBody<T>>(), 1);
  }
};

}  // namespace dflow
