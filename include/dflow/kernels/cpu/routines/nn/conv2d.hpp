#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/cpu/routines/math/gemm.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>
#include <dflow/kernels/shared/conv2d_shape.hpp>

#include <cstdint>

namespace dflow::cpu {

/// output = conv(input, filter), with the epilogue that gemm gives its products; `epilogue.accumulate` adds to the
/// values in output.
/// T: float, double, Half, BFloat16 (both through float).
template <class T>
void conv2d(ThreadPool& pool, const Conv2dShape& shape, const T* input, const T* filter, T* output,
            const Epilogue<T>& epilogue = {}, const CpuOptions& options = {});

/// grad_input = d loss / d input, given grad_output = d loss / d output.
template <class T>
void conv2d_backward_input(ThreadPool& pool, const Conv2dShape& shape, const T* filter, const T* grad_output,
                           T* grad_input, const CpuOptions& options = {});

/// grad_filter = d loss / d filter, summed over the batch.
template <class T>
void conv2d_backward_filter(ThreadPool& pool, const Conv2dShape& shape, const T* input, const T* grad_output,
                            T* grad_filter, const CpuOptions& options = {});

}  // namespace dflow::cpu
