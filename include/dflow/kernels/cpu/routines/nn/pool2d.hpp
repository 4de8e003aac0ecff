#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>
#include <dflow/kernels/shared/pool2d_shape.hpp>

namespace dflow::cpu {

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
