#pragma once

#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>
#include <dflow/kernels/cpu/routines/nn/pool2d.hpp>
#include <dflow/kernels/cpu/routines/widened.hpp>

#include <algorithm>
#include <cstdint>

namespace dflow::cpu {

inline Windows windows_of(const Pool2dShape& s) {
  return {s.in_rows,     s.in_cols, s.channels, s.out_rows(), s.out_cols(), s.window_rows, s.window_cols, s.stride_rows,
          s.stride_cols, 1,         1,          s.pad_top,    s.pad_left};
}

/// Calls body(image, first channel, end channel) so that every channel of every image is covered once; each is computed
/// by one thread.
template <class Body>
void for_each_image(ThreadPool& pool, const Pool2dShape& s, std::size_t element_bytes, Body&& body) {
  // Channels are split only where there are too few images, and then into blocks of whole cache lines.
  const std::int64_t wanted = s.batch >= 2 * pool.num_threads() ? 1 : 4 * pool.num_threads();
  const auto line = static_cast<std::int64_t>(64 / element_bytes) * 2;
  const std::int64_t block = std::max<std::int64_t>(line, (s.channels / wanted + line - 1) / line * line);
  const std::int64_t blocks = wanted == 1 ? 1 : (s.channels + block - 1) / block;
  const double work =
      static_cast<double>(s.out_rows() * s.out_cols() * s.window_rows * s.window_cols + s.in_rows * s.in_cols);
  const double cost_ns = 20 + work * static_cast<double>(s.channels) * static_cast<double>(element_bytes) / 60;
  pool.parallel_for(s.batch * blocks, cost_ns / static_cast<double>(blocks), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t first = blocks == 1 ? 0 : task % blocks * block;
      body(task / blocks, first, blocks == 1 ? s.channels : std::min(s.channels, first + block));
    }
  });
}

inline std::int64_t image_size(const Pool2dShape& s) { return s.in_rows * s.in_cols * s.channels; }
inline std::int64_t pooled_size(const Pool2dShape& s) { return s.out_rows() * s.out_cols() * s.channels; }

template <class T>
void max_pool(ThreadPool& pool, const Pool2dShape& s, const T* input, T* output, const CpuOptions& options) {
  if constexpr (is_16_bit_float<T>) {
    const Widened<T> x(pool, options, s.batch * image_size(s), input);
    const Widened<T> y(pool, options, s.batch * pooled_size(s), nullptr);
    max_pool<float>(pool, s, x.get(), y.get(), options);
    y.narrow_to(output);
  } else {
    const auto& table = loops<PoolLoops<T>>(options.max_level);
    const Windows windows = windows_of(s);
    for_each_image(pool, s, sizeof(T), [&](std::int64_t image, std::int64_t first, std::int64_t end) {
      table.maximum(windows, first, end, input + image * image_size(s), output + image * pooled_size(s));
    });
  }
}

template <class T>
void max_pool_backward(ThreadPool& pool, const Pool2dShape& s, const T* input, const T* grad_output, T* grad_input,
                       const CpuOptions& options) {
  if constexpr (is_16_bit_float<T>) {
    const Widened<T> x(pool, options, s.batch * image_size(s), input);
    const Widened<T> dy(pool, options, s.batch * pooled_size(s), grad_output);
    const Widened<T> dx(pool, options, s.batch * image_size(s), nullptr);
    max_pool_backward<float>(pool, s, x.get(), dy.get(), dx.get(), options);
    dx.narrow_to(grad_input);
  } else {
    const auto& table = loops<PoolLoops<T>>(options.max_level);
    const Windows windows = windows_of(s);
    for_each_image(pool, s, sizeof(T), [&](std::int64_t image, std::int64_t first, std::int64_t end) {
      table.maximum_backward(windows, first, end, input + image * image_size(s), grad_output + image * pooled_size(s),
                             grad_input + image * image_size(s));
    });
  }
}

template <class T>
void avg_pool(ThreadPool& pool, const Pool2dShape& s, const T* input, T* output, const CpuOptions& options) {
  if constexpr (is_16_bit_float<T>) {
    const Widened<T> x(pool, options, s.batch * image_size(s), input);
    const Widened<T> y(pool, options, s.batch * pooled_size(s), nullptr);
    avg_pool<float>(pool, s, x.get(), y.get(), options);
    y.narrow_to(output);
  } else {
    const auto& table = loops<PoolLoops<T>>(options.max_level);
    const Windows windows = windows_of(s);
    for_each_image(pool, s, sizeof(T), [&](std::int64_t image, std::int64_t first, std::int64_t end) {
      table.average(windows, first, end, input + image * image_size(s), output + image * pooled_size(s));
    });
  }
}

template <class T>
void avg_pool_backward(ThreadPool& pool, const Pool2dShape& s, const T* grad_output, T* grad_input,
                       const CpuOptions& options) {
  if constexpr (is_16_bit_float<T>) {
    const Widened<T> dy(pool, options, s.batch * pooled_size(s), grad_output);
    const Widened<T> dx(pool, options, s.batch * image_size(s), nullptr);
    avg_pool_backward<float>(pool, s, dy.get(), dx.get(), options);
    dx.narrow_to(grad_input);
  } else {
    const auto& table = loops<PoolLoops<T>>(options.max_level);
    const Windows windows = windows_of(s);
    for_each_image(pool, s, sizeof(T), [&](std::int64_t image, std::int64_t first, std::int64_t end) {
      table.average_backward(windows, first, end, grad_output + image * pooled_size(s),
                             grad_input + image * image_size(s));
    });
  }
}

}  // namespace dflow::cpu
