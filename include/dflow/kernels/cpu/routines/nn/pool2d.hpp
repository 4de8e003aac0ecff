#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include <cstdint>

namespace dflow::cpu {

/// Sizes of 2-D pooling: input [batch, in_rows, in_cols, channels], output [batch, out_rows(), out_cols(), channels].
struct Pool2dShape {
  std::int64_t batch = 0, in_rows = 0, in_cols = 0, channels = 0;
  std::int64_t window_rows = 1, window_cols = 1;
  std::int64_t stride_rows = 1, stride_cols = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;

  [[nodiscard]] constexpr std::int64_t out_rows() const {
    return extent(in_rows + pad_top + pad_bottom, window_rows, stride_rows);
  }
  [[nodiscard]] constexpr std::int64_t out_cols() const {
    return extent(in_cols + pad_left + pad_right, window_cols, stride_cols);
  }
  friend constexpr bool operator==(const Pool2dShape&, const Pool2dShape&) = default;

 private:
  static constexpr std::int64_t extent(std::int64_t padded, std::int64_t window, std::int64_t stride) {
    return padded < window ? 0 : (padded - window) / stride + 1;
  }
};

/// Largest element of each window; padding never wins. A window that holds a NaN gives NaN. A window without any
/// element of the input gives the lowest value. T: every real type.
template <class T>
void max_pool(ThreadPool& pool, const Pool2dShape& shape, const T* input, T* output, const CpuOptions& options = {});

/// grad_input = d loss / d input: each element of grad_output goes to the first maximum of its window, in row-major
/// order. T: float, double, Half, BFloat16.
template <class T>
void max_pool_backward(ThreadPool& pool, const Pool2dShape& shape, const T* input, const T* grad_output, T* grad_input,
                       const CpuOptions& options = {});

/// Mean of the elements of the input in each window; padding is not counted. A window of padding alone gives 0.
/// T: float, double, Half, BFloat16.
template <class T>
void avg_pool(ThreadPool& pool, const Pool2dShape& shape, const T* input, T* output, const CpuOptions& options = {});

/// grad_input = d loss / d input; the input itself is not needed.
template <class T>
void avg_pool_backward(ThreadPool& pool, const Pool2dShape& shape, const T* grad_output, T* grad_input,
                       const CpuOptions& options = {});

}  // namespace dflow::cpu

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/routines/nn/pool2d.ipp>
#endif
