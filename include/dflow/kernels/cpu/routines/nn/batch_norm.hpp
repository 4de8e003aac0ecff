#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include <cstdint>

namespace dflow::cpu {

/// Type of a layer's statistics and parameters: float for the 16-bit types.
template <class T>
struct BatchNormParam {
  using type = T;
};
template <>
struct BatchNormParam<Half> {
  using type = float;
};
template <>
struct BatchNormParam<BFloat16> {
  using type = float;
};
template <class T>
using batch_norm_param_t = typename BatchNormParam<T>::type;

/// Batch normalisation (Ioffe and Szegedy 2015, arXiv:1502.03167) over all axes but the last: x, y [rows, channels],
/// everything else [channels]. `variance` is the biased one (divided by rows); `inv_std` is 1 / sqrt(variance +
/// epsilon). T: float, double, Half, BFloat16. The bits do not depend on the number of threads.
template <class T>
void batch_norm_training(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x,
                         const batch_norm_param_t<T>* scale, const batch_norm_param_t<T>* offset,
                         batch_norm_param_t<T> epsilon, T* y, batch_norm_param_t<T>* mean,
                         batch_norm_param_t<T>* variance, const CpuOptions& options = {});

/// y = (x - mean) / sqrt(variance + epsilon) * scale + offset, with given statistics.
template <class T>
void batch_norm_inference(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x,
                          const batch_norm_param_t<T>* scale, const batch_norm_param_t<T>* offset,
                          const batch_norm_param_t<T>* mean, const batch_norm_param_t<T>* variance,
                          batch_norm_param_t<T> epsilon, T* y, const CpuOptions& options = {});

/// Gradients of batch_norm_training, through the statistics; mean and variance are its results.
template <class T>
void batch_norm_training_backward(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x,
                                  const T* grad_y, const batch_norm_param_t<T>* scale,
                                  const batch_norm_param_t<T>* mean, const batch_norm_param_t<T>* variance,
                                  batch_norm_param_t<T> epsilon, T* grad_x, batch_norm_param_t<T>* grad_scale,
                                  batch_norm_param_t<T>* grad_offset, const CpuOptions& options = {});

/// Gradients of batch_norm_inference with respect to x, scale and offset, the statistics being constants.
template <class T>
void batch_norm_inference_backward(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x,
                                   const T* grad_y, const batch_norm_param_t<T>* scale,
                                   const batch_norm_param_t<T>* mean, const batch_norm_param_t<T>* variance,
                                   batch_norm_param_t<T> epsilon, T* grad_x, batch_norm_param_t<T>* grad_scale,
                                   batch_norm_param_t<T>* grad_offset, const CpuOptions& options = {});

}  // namespace dflow::cpu
