#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include <cstdint>

namespace dflow::cpu {

/// Softmax and related functions, over rows of [rows, cols]; each row is shifted by its maximum. T: float, double,
/// Half, BFloat16 (both computed in float). An output may be an input of the same size, except the labels.
template <class T>
void softmax(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* logits, T* y,
             const CpuOptions& options = {});
template <class T>
void log_softmax(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* logits, T* y,
                 const CpuOptions& options = {});

/// grad_x = (grad_y - sum(grad_y * y)) * y, with y the result of softmax.
template <class T>
void softmax_backward(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* y, const T* grad_y, T* grad_x,
                      const CpuOptions& options = {});
/// grad_x = grad_y - exp(y) * sum(grad_y), with y the result of log_softmax.
template <class T>
void log_softmax_backward(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* y, const T* grad_y,
                          T* grad_x, const CpuOptions& options = {});

/// loss[r] = -sum over c of labels[r, c] log softmax(logits)[r, c]; backprop = softmax(logits) - labels, which is d
/// loss / d logits where each row of labels sums to 1. loss or backprop may be null if it is not wanted.
template <class T>
void softmax_cross_entropy(ThreadPool& pool, std::int64_t rows, std::int64_t cols, const T* logits, const T* labels,
                           T* loss, T* backprop, const CpuOptions& options = {});

/// The same with one class per row, labels[r] in [0, cols). Returns -1, or the first row with a label out of range.
/// The loss and backprop of a row with a label out of range are NaN. Index: int32, int64.
template <class T, class Index>
[[nodiscard]] std::int64_t sparse_softmax_cross_entropy(ThreadPool& pool, std::int64_t rows, std::int64_t cols,
                                                        const T* logits, const Index* labels, T* loss, T* backprop,
                                                        const CpuOptions& options = {});

}  // namespace dflow::cpu
