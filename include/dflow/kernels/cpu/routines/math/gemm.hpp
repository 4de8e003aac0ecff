#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include <concepts>
#include <cstdint>

namespace dflow::cpu {

/// The last operation of a product before its result is stored: c = beta * c + a b.
template <class T>
struct Epilogue {
  bool accumulate = false;  ///< beta is 1 instead of 0; with 0, c is not read and may hold anything
};

/// c = relu(beta * c + a b + bias), in this order. The bits are the same as for the product with `bias_add` after it.
/// The one exception is the sum of two NaNs, which may be either NaN.
template <std::floating_point T>
struct Epilogue<T> {
  bool accumulate = false;
  const T* bias = nullptr;  ///< [n], added to each row
  bool relu = false;
};

/// c[m, n] = op(a)[m, k] op(b)[k, n], row-major and dense. op transposes when its flag is set: the memory of a is then
/// [k, m] and the memory of b [n, k]. Any size may be 0; with k = 0 the product is 0. c overlaps neither a nor b.
///
/// T: float, double, Half, BFloat16 (both accumulated in float and rounded once), int8 to int64, uint8 to uint64
/// (wrapping), std::complex<float>, std::complex<double>. Long inner dimensions are summed in parts of some thousand,
/// pairwise. The error of 10^6 products is then the error of one part and of some dozen additions. With
/// `CpuBackend::builtin` the bits of c do not depend on the number of threads.
template <class T>
void gemm(ThreadPool& pool, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const T* a, const T* b, T* c, const Epilogue<T>& epilogue = {}, const CpuOptions& options = {});

/// `batch` products as gemm does one. Matrix i of each operand begins at i times its stride, in elements; a stride of 0
/// uses one matrix for all. The matrices of c do not overlap.
struct BatchStrides {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
};
template <class T>
void batched_gemm(ThreadPool& pool, std::int64_t batch, const BatchStrides& strides, bool transpose_a, bool transpose_b,
                  std::int64_t m, std::int64_t n, std::int64_t k, const T* a, const T* b, T* c,
                  const Epilogue<T>& epilogue = {}, const CpuOptions& options = {});

}  // namespace dflow::cpu
