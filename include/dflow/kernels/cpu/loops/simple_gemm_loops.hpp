#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>

/// Products of integers (wrapping) and products of complex numbers with few rows, summed in parts of some thousand.
/// Also loops that turn other products of complex numbers into real products.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

template <class T>
struct SimpleProduct {
  static DFLOW_LANE void add(T& sum, T a, T b) { sum = static_cast<T>(sum + static_cast<T>(a * b)); }
  static DFLOW_LANE void add(T& sum, T a) { sum = static_cast<T>(sum + a); }
};
template <>
struct SimpleProduct<uint16_t> {
  // Two uint16 are multiplied as int, which could overflow.
  static DFLOW_LANE void add(uint16_t& sum, uint16_t a, uint16_t b) {
    sum = static_cast<uint16_t>(sum + static_cast<uint32_t>(a) * b);
  }
  static DFLOW_LANE void add(uint16_t& sum, uint16_t a) { sum = static_cast<uint16_t>(sum + a); }
};
template <class T>
struct SimpleProduct<ComplexParts<T>> {
  static DFLOW_LANE void add(ComplexParts<T>& sum, ComplexParts<T> a, ComplexParts<T> b) {
    sum.re += a.re * b.re - a.im * b.im;
    sum.im += a.re * b.im + a.im * b.re;
  }
  static DFLOW_LANE void add(ComplexParts<T>& sum, ComplexParts<T> a) {
    sum.re += a.re;
    sum.im += a.im;
  }
};

template <class T>
void simple_gemm_direct(int64_t m, int64_t n, int64_t k, const T* a, int64_t row_stride, int64_t depth_stride,
                        const T* b, int64_t ldb, T* c, int64_t ldc, bool accumulate) {
  constexpr int64_t width = 512 / sizeof(T);
  constexpr int64_t chain = 2048;
  for (int64_t j = 0; j < n; j += width) {
    const int64_t columns = min_of<int64_t>(width, n - j);
    for (int64_t i = 0; i < m; ++i) {
      T sum[width];
      for (int64_t l = 0; l < columns; ++l) sum[l] = accumulate ? c[i * ldc + j + l] : T{};
      for (int64_t first = 0; first < k; first += chain) {
        const int64_t end = min_of(k, first + chain);
        T part[width] = {};
        for (int64_t p = first; p < end; ++p) {
          const T left = a[i * row_stride + p * depth_stride];
          const T* right = b + p * ldb + j;
          for (int64_t l = 0; l < columns; ++l) SimpleProduct<T>::add(part[l], left, right[l]);
        }
        for (int64_t l = 0; l < columns; ++l) SimpleProduct<T>::add(sum[l], part[l]);
      }
      for (int64_t l = 0; l < columns; ++l) c[i * ldc + j + l] = sum[l];
    }
  }
}

template <class T>
inline constexpr SimpleGemmLoops<T> simple_gemm_table = {simple_gemm_direct<T>};
template <class T>
struct TableOf<SimpleGemmLoops<T>> {
  static constexpr const SimpleGemmLoops<T>& value = simple_gemm_table<T>;
};

template <class T, bool transposed>
void expand_complex(int64_t rows, int64_t columns, const ComplexParts<T>* from, T* DFLOW_RESTRICT to) {
  for (int64_t i = 0; i < rows; ++i) {
    const ComplexParts<T>* row = from + i * columns;
    T* first = to + 4 * i * columns;
    T* second = first + 2 * columns;
    for (int64_t j = 0; j < columns; ++j) {
      first[2 * j] = row[j].re;
      first[2 * j + 1] = transposed ? -row[j].im : row[j].im;
    }
    for (int64_t j = 0; j < columns; ++j) {
      second[2 * j] = transposed ? row[j].im : -row[j].im;
      second[2 * j + 1] = row[j].re;
    }
  }
}

template <class T>
inline constexpr ComplexGemmLoops<T> complex_gemm_table = {expand_complex<T, false>, expand_complex<T, true>};
template <class T>
struct TableOf<ComplexGemmLoops<T>> {
  static constexpr const ComplexGemmLoops<T>& value = complex_gemm_table<T>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
