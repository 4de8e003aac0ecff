#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/cpu/routines/math/reduce.hpp>

#include <cstdint>

namespace dflow::cpu {

/// y[r, c] = x[r, c] + bias[c], then relu if asked; y may be x. T: every numeric type; relu not for complex types.
template <class T>
void bias_add(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x, const T* bias, T* y,
              bool relu = false, const CpuOptions& options = {});

/// y[b, c, i] = x[b, c, i] + bias[c] (NCHW); y may be x.
template <class T>
void bias_add_channels_first(ThreadPool& pool, std::int64_t batch, std::int64_t channels, std::int64_t inner,
                             const T* x, const T* bias, T* y, const CpuOptions& options = {});

/// grad_bias[c] = sum over r of grad_y[r, c].
template <class T>
void bias_add_backward(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* grad_y, T* grad_bias,
                       const CpuOptions& options = {}) {
  reduce_sum(pool, ReduceShape{1, rows, channels}, grad_y, grad_bias, options);
}

}  // namespace dflow::cpu
