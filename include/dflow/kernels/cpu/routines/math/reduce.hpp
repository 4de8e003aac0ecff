#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include <cstdint>

namespace dflow::cpu {

/// x [outer, reduce, inner] becomes y [outer, inner].
struct ReduceShape {
  std::int64_t outer = 1;
  std::int64_t reduce = 1;
  std::int64_t inner = 1;
};

/// Reductions over the middle axis. Floating-point sums run over many short partial sums, so that their error grows far
/// slower than with one accumulator; Half and BFloat16 accumulate in float. Sums and products of integers wrap; their
/// means are quotients of sums of 64 bits, rounded toward 0. The bits do not depend on the number of threads. Over no
/// elements: sum 0, mean NaN (0 for integers), product 1, maximum the lowest value (-inf), minimum the highest (inf). A
/// NaN makes maximum and minimum NaN.
///
/// T of sum, mean, product: every numeric type, complex ones too; of max and min: every real one.
template <class T>
void reduce_sum(ThreadPool& pool, const ReduceShape& shape, const T* x, T* y, const CpuOptions& options = {});
template <class T>
void reduce_mean(ThreadPool& pool, const ReduceShape& shape, const T* x, T* y, const CpuOptions& options = {});
template <class T>
void reduce_prod(ThreadPool& pool, const ReduceShape& shape, const T* x, T* y, const CpuOptions& options = {});
template <class T>
void reduce_max(ThreadPool& pool, const ReduceShape& shape, const T* x, T* y, const CpuOptions& options = {});
template <class T>
void reduce_min(ThreadPool& pool, const ReduceShape& shape, const T* x, T* y, const CpuOptions& options = {});

void reduce_all(ThreadPool& pool, const ReduceShape& shape, const bool* x, bool* y, const CpuOptions& options = {});
void reduce_any(ThreadPool& pool, const ReduceShape& shape, const bool* x, bool* y, const CpuOptions& options = {});

/// Position along the middle axis of the first maximum or minimum; NaNs are passed over, and 0 is the answer where
/// nothing is found. T: every real numeric type; Index: int32, int64.
template <class T, class Index>
void argmax(ThreadPool& pool, const ReduceShape& shape, const T* x, Index* y, const CpuOptions& options = {});
template <class T, class Index>
void argmin(ThreadPool& pool, const ReduceShape& shape, const T* x, Index* y, const CpuOptions& options = {});

/// Sum of the squares of n elements, as accurate as reduce_sum. T: float, double, Half, BFloat16.
template <class T>
T sum_of_squares(ThreadPool& pool, std::int64_t n, const T* x, const CpuOptions& options = {});

}  // namespace dflow::cpu
