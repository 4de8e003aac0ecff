#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/batch_norm.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/ops/nn/batch_norm.hpp>

#include <type_traits>

namespace dflow {

namespace cuda {

/// The kernels of batch normalisation over elements of one type.
struct BatchNormCode {
  const KernelFunction *mean, *join_mean, *variance, *join_variance, *gradients, *join_gradients;
  const KernelFunction *normalise, *normalise_gradient;
};
template <class T>
BatchNormCode batch_norm_code() {
  using U = detail::ChannelType<T>;
  using namespace detail;
  return {&kernel_function<ChannelPartsBody<T, MeanOfChannel>>(),
          &kernel_function<JoinChannelsBody<U, MeanOfChannel>>(),
          &kernel_function<ChannelPartsBody<T, VarianceOfChannel>>(),
          &kernel_function<JoinChannelsBody<U, VarianceOfChannel>>(),
          &kernel_function<ChannelPartsBody<T, GradientsOfChannel>>(),
          &kernel_function<JoinChannelsBody<U, GradientsOfChannel>>(),
          &kernel_function<NormaliseBody<T>>(),
          &kernel_function<NormaliseGradBody<T>>()};
}

void batch_norm(KernelContext& context, const BatchNormAttrs& attrs, const BatchNormCode& code);
void batch_norm_gradient(KernelContext& context, const BatchNormAttrs& attrs, const BatchNormCode& code);

}  // namespace cuda

template <class T, class U>
  requires std::is_same_v<U, BatchNormParameter<T>>
struct Kernel<FusedBatchNorm, Cuda, T, U> {
  BatchNormAttrs attrs;

  void operator()(KernelContext& context) const { cuda::batch_norm(context, attrs, cuda::batch_norm_code<T>()); }
};
template <class T, class U>
  requires std::is_same_v<U, BatchNormParameter<T>>
struct Kernel<FusedBatchNormGrad, Cuda, T, U> {
  BatchNormAttrs attrs;

  void operator()(KernelContext& context) const {
    cuda::batch_norm_gradient(context, attrs, cuda::batch_norm_code<T>());
  }
};

}  // namespace dflow
