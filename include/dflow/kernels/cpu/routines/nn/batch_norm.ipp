#pragma once

#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache_state.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>
#include <dflow/kernels/cpu/routines/nn/batch_norm.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace dflow::cpu {

/// The number of rows in one task of the statistics: they stay in the cache for a second look. A function of the shape
/// alone, so that the bits do not depend on the number of threads.
inline std::int64_t batch_norm_chunk(std::int64_t channels) {
  return std::max<std::int64_t>(16, 65536 / std::max<std::int64_t>(1, channels));
}

template <class T>
void batch_norm_moments(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x,
                        batch_norm_param_t<T>* mean, batch_norm_param_t<T>* variance, const CpuOptions& options) {
  using P = batch_norm_param_t<T>;
  const auto& table = loops<BatchNormLoops<loop_t<T>>>(options.max_level);
  const std::int64_t chunk = batch_norm_chunk(channels);
  const std::int64_t chunks = (rows + chunk - 1) / chunk;
  const Scratch scratch(options.cache, static_cast<std::size_t>(2 * chunks * channels) * sizeof(double));
  double* means = scratch.as<double>();
  double* squares = means + chunks * channels;
  pool.parallel_for(chunks, 0.3 * static_cast<double>(chunk * channels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      table.moments(std::min(chunk, rows - i * chunk), channels, as_loop(x) + i * chunk * channels,
                    means + i * channels, squares + i * channels);
    }
  });
  // Chan, Golub and LeVeque 1983: moments of a union from the moments of its parts.
  for (std::int64_t c = 0; c < channels; ++c) {
    double count = 0, average = 0, square = 0;
    for (std::int64_t i = 0; i < chunks; ++i) {
      const auto more = static_cast<double>(std::min(chunk, rows - i * chunk));
      const double distance = means[i * channels + c] - average;
      const double total = count + more;
      square += squares[i * channels + c] + distance * distance * count * more / total;
      average += distance * more / total;
      count = total;
    }
    mean[c] = static_cast<P>(rows == 0 ? std::nan("") : average);
    variance[c] = static_cast<P>(square / static_cast<double>(rows));
  }
}

/// A task of rows for the passes that only go through memory.
template <class Body>
void for_each_rows(ThreadPool& pool, std::int64_t rows, std::int64_t channels, Body&& body) {
  pool.parallel_for(rows, 0.6 * static_cast<double>(channels), body);
}

template <class T>
void batch_norm_inference(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x,
                          const batch_norm_param_t<T>* scale, const batch_norm_param_t<T>* offset,
                          const batch_norm_param_t<T>* mean, const batch_norm_param_t<T>* variance,
                          batch_norm_param_t<T> epsilon, T* y, const CpuOptions& options) {
  using P = batch_norm_param_t<T>;
  if (rows == 0 || channels == 0) return;
  const auto& table = loops<BatchNormLoops<loop_t<T>>>(options.max_level);
  const Scratch scratch(options.cache, static_cast<std::size_t>(channels) * sizeof(P));
  P* factor = scratch.as<P>();
  for (std::int64_t c = 0; c < channels; ++c) factor[c] = scale[c] / std::sqrt(variance[c] + epsilon);
  for_each_rows(pool, rows, channels, [&](std::int64_t begin, std::int64_t end) {
    table.normalize(end - begin, channels, as_loop(x) + begin * channels, mean, factor, offset,
                    as_loop(y) + begin * channels);
  });
}

template <class T>
void batch_norm_training(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x,
                         const batch_norm_param_t<T>* scale, const batch_norm_param_t<T>* offset,
                         batch_norm_param_t<T> epsilon, T* y, batch_norm_param_t<T>* mean,
                         batch_norm_param_t<T>* variance, const CpuOptions& options) {
  if (channels == 0) return;
  batch_norm_moments(pool, rows, channels, x, mean, variance, options);
  batch_norm_inference(pool, rows, channels, x, scale, offset, mean, variance, epsilon, y, options);
}

/// `through_statistics` tells whether mean and variance depend on x.
template <class T>
void batch_norm_backward(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x, const T* grad_y,
                         const batch_norm_param_t<T>* scale, const batch_norm_param_t<T>* mean,
                         const batch_norm_param_t<T>* variance, batch_norm_param_t<T> epsilon, T* grad_x,
                         batch_norm_param_t<T>* grad_scale, batch_norm_param_t<T>* grad_offset, bool through_statistics,
                         const CpuOptions& options) {
  using P = batch_norm_param_t<T>;
  if (channels == 0) return;
  const auto& table = loops<BatchNormLoops<loop_t<T>>>(options.max_level);
  const std::int64_t chunk = batch_norm_chunk(channels);
  const std::int64_t chunks = (rows + chunk - 1) / chunk;
  const Scratch sums(options.cache, static_cast<std::size_t>(2 * chunks * channels) * sizeof(double));
  const Scratch parameters(options.cache, static_cast<std::size_t>(3 * channels) * sizeof(P));
  double* plain = sums.as<double>();
  double* centered = plain + chunks * channels;
  pool.parallel_for(chunks, 0.4 * static_cast<double>(chunk * channels), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = i * chunk * channels;
      table.grad_sums(std::min(chunk, rows - i * chunk), channels, as_loop(x) + at, as_loop(grad_y) + at, mean,
                      plain + i * channels, centered + i * channels);
    }
  });
  P* factor = parameters.as<P>();
  P* shift = factor + channels;
  P* slope = shift + channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0, along = 0;
    for (std::int64_t i = 0; i < chunks; ++i) {
      sum += plain[i * channels + c];
      along += centered[i * channels + c];
    }
    const double inv_std = 1 / std::sqrt(static_cast<double>(variance[c]) + static_cast<double>(epsilon));
    const double inv_rows = through_statistics ? 1 / static_cast<double>(rows) : 0;
    grad_scale[c] = static_cast<P>(rows == 0 ? 0 : along * inv_std);
    grad_offset[c] = static_cast<P>(sum);
    factor[c] = static_cast<P>(static_cast<double>(scale[c]) * inv_std);
    shift[c] = static_cast<P>(sum * inv_rows);
    slope[c] = static_cast<P>(along * inv_std * inv_std * inv_rows);
  }
  for_each_rows(pool, rows, channels, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * channels;
    table.grad_input(end - begin, channels, as_loop(x) + at, as_loop(grad_y) + at, mean, factor, shift, slope,
                     as_loop(grad_x) + at);
  });
}

template <class T>
void batch_norm_training_backward(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x,
                                  const T* grad_y, const batch_norm_param_t<T>* scale,
                                  const batch_norm_param_t<T>* mean, const batch_norm_param_t<T>* variance,
                                  batch_norm_param_t<T> epsilon, T* grad_x, batch_norm_param_t<T>* grad_scale,
                                  batch_norm_param_t<T>* grad_offset, const CpuOptions& options) {
  batch_norm_backward(pool, rows, channels, x, grad_y, scale, mean, variance, epsilon, grad_x, grad_scale, grad_offset,
                      true, options);
}

template <class T>
void batch_norm_inference_backward(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x,
                                   const T* grad_y, const batch_norm_param_t<T>* scale,
                                   const batch_norm_param_t<T>* mean, const batch_norm_param_t<T>* variance,
                                   batch_norm_param_t<T> epsilon, T* grad_x, batch_norm_param_t<T>* grad_scale,
                                   batch_norm_param_t<T>* grad_offset, const CpuOptions& options) {
  batch_norm_backward(pool, rows, channels, x, grad_y, scale, mean, variance, epsilon, grad_x, grad_scale, grad_offset,
                      false, options);
}

}  // namespace dflow::cpu
