#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/kernels/cpu/routines/array/transpose.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>
#include <dflow/kernels/cpu/routines/math/gemm.hpp>
#include <dflow/kernels/cpu/routines/math/gemm_builtin.hpp>
#include <dflow/kernels/cpu/routines/onednn.hpp>
#include <dflow/kernels/cpu/routines/widened.hpp>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

namespace dflow::cpu {

/// True for products at which oneDNN measured faster than the loops here. With AVX-512: all but small products. With
/// AVX2: large products alone, and products with a transposed b.
inline bool onednn_wins(const Product<float>& p, CpuLevel max_level) {
  static const CpuLevel detected = detect_cpu_level();
  const double products = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  if (detected >= CpuLevel::x86_64_v4 && max_level >= CpuLevel::x86_64_v4) {
    return std::min({p.m, p.n, p.k}) >= 8 && products >= 80.0 * 80 * 80;
  }
  if (p.m < 48 || p.n < 48 || p.k < 48) return false;
  return products >= (p.b_column == 1 ? 800.0 * 800 * 800 : 256.0 * 256 * 256);
}

/// One sgemm of oneDNN per shard of the longer side of c.
inline void gemm_by_onednn(ThreadPool& pool, const Product<float>& p, const CpuOptions& options) {
  const bool by_rows = p.m >= p.n;
  const std::int64_t extent = by_rows ? p.m : p.n;
  const std::int64_t wanted = options.reproducible ? 8 : pool.num_threads();
  // Multiples of oneDNN's blocks of 8 rows, and of vectors in a row. Blocks are 48 columns wide, but in units of 48
  // one of two shards of 512 would be a quarter larger.
  const std::int64_t shard = round_up((extent + wanted - 1) / wanted, by_rows ? 8 : 16);
  const std::int64_t shards = (extent + shard - 1) / shard;
  pool.parallel_for(shards, p.cost_ns() / static_cast<double>(shards), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t s = begin; s < end; ++s) {
      const std::int64_t first = s * shard;
      const std::int64_t count = std::min(shard, extent - first);
      const Product<float> part = by_rows ? p.rows(first, count) : p.columns(first, count);
      const bool transpose_a = part.a_depth != 1;
      const bool transpose_b = part.b_column != 1;
      if (onednn_gemm(transpose_a, transpose_b, part.m, part.n, part.k, part.a, transpose_a ? part.a_depth : part.a_row,
                      part.b, transpose_b ? part.b_column : part.b_depth, part.c, part.ldc, part.epilogue.accumulate)) {
        finish_rows(part.m, part.n, part.c, part.ldc, part.epilogue, options);
      } else {
        InlinePool serial;
        gemm_builtin(serial, part, options);
      }
    }
  });
}

template <class T>
void gemm_real(ThreadPool& pool, const Product<T>& p, const CpuOptions& options) {
  if constexpr (std::is_same_v<T, float>) {
    if (has_onednn() && p.k > 0 && options.backend != CpuBackend::builtin &&
        (options.backend == CpuBackend::onednn || onednn_wins(p, options.max_level))) {
      // oneDNN sums up to this many in blocks of its own.
      constexpr std::int64_t longest = 4 * longest_chain;
      return multiply_in_halves(pool, p, longest, options,
                                [&](const Product<float>& part) { gemm_by_onednn(pool, part, options); });
    }
  }
  gemm_builtin(pool, p, options);
}

/// Half and BFloat16: operands widened to float, the float product rounded once.
template <class T>
void gemm_16_bit(ThreadPool& pool, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                 const T* a, const T* b, T* c, const Epilogue<T>& epilogue, const CpuOptions& options) {
  const Widened<T> wide_a(pool, options, m * k, a);
  const Widened<T> wide_b(pool, options, k * n, b);
  const Widened<T> wide_c(pool, options, m * n, epilogue.accumulate ? c : nullptr);
  gemm(pool, transpose_a, transpose_b, m, n, k, wide_a.get(), wide_b.get(), wide_c.get(),
       Epilogue<float>{epilogue.accumulate}, options);
  wide_c.narrow_to(c);
}

/// b and its transpose as `gemm_complex` reads them.
template <class T>
void expand_complex(ThreadPool& pool, std::int64_t rows, std::int64_t columns, const std::complex<T>* from,
                    bool transposed, T* to, const CpuOptions& options) {
  const auto& table = loops<ComplexGemmLoops<T>>(options.max_level);
  const auto expand = transposed ? table.expand_transposed : table.expand;
  pool.parallel_for(rows, static_cast<double>(columns), [&](std::int64_t begin, std::int64_t end) {
    expand(end - begin, columns, as_loop(from) + begin * columns, to + 4 * begin * columns);
  });
}

/// c[m] (+)= a[m, k] b[k]: the rows of a, read once, with two rows made of b.
template <class T>
void gemv_complex(ThreadPool& pool, std::int64_t m, std::int64_t k, const std::complex<T>* a, const std::complex<T>* b,
                  std::complex<T>* c, bool accumulate, const CpuOptions& options) {
  const Scratch expanded(options.cache, static_cast<std::size_t>(4 * k) * sizeof(T));
  const Scratch parts(options.cache, static_cast<std::size_t>(2 * m) * sizeof(T));
  expand_complex(pool, 1, k, b, true, expanded.as<T>(), options);
  T* const sums = parts.as<T>();
  gemm(pool, false, true, 2, m, 2 * k, static_cast<const T*>(expanded.as<T>()), reinterpret_cast<const T*>(a), sums, {},
       options);
  for (std::int64_t i = 0; i < m; ++i) {
    const std::complex<T> sum(sums[i], sums[m + i]);
    c[i] = accumulate ? c[i] + sum : sum;
  }
}

/// Complex numbers as real numbers. The parts of a number lie side by side, so a [m, k] and c [m, n] are real matrices
/// [m, 2k] and [m, 2n] in place. b becomes a real matrix [2k, 2n].
template <class T>
void gemm_complex(ThreadPool& pool, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                  const std::complex<T>* a, const std::complex<T>* b, std::complex<T>* c,
                  const Epilogue<std::complex<T>>& epilogue, const CpuOptions& options) {
  if (n == 1 && !transpose_a) return gemv_complex(pool, m, k, a, b, c, epilogue.accumulate, options);
  if (m == 1 && transpose_b) return gemv_complex(pool, n, k, b, a, c, epilogue.accumulate, options);
  const Scratch rows_of_a(options.cache, transpose_a ? static_cast<std::size_t>(m * k) * sizeof(*a) : 0);
  if (transpose_a) {
    const std::int64_t dims[] = {k, m};
    const std::int32_t permutation[] = {1, 0};
    transpose(pool, sizeof(*a), dims, permutation, a, rows_of_a.as<std::complex<T>>(), options);
    a = rows_of_a.as<std::complex<T>>();
  }
  const Scratch expanded(options.cache, static_cast<std::size_t>(4 * k * n) * sizeof(T));
  expand_complex(pool, transpose_b ? n : k, transpose_b ? k : n, b, transpose_b, expanded.as<T>(), options);
  gemm(pool, false, transpose_b, m, 2 * n, 2 * k, reinterpret_cast<const T*>(a),
       static_cast<const T*>(expanded.as<T>()), reinterpret_cast<T*>(c), Epilogue<T>{epilogue.accumulate}, options);
}

/// True for complex products that read b too few times to pay for an expansion of it.
inline bool has_few_rows(bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k) {
  return !transpose_b && m < 4 && (n >= 16 || m * n * k <= 64);
}

/// Integers, and complex numbers of few rows. A transposed b is brought into row order first.
template <class T>
void gemm_simple(ThreadPool& pool, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                 const T* a, const T* b, T* c, const Epilogue<T>& epilogue, const CpuOptions& options) {
  using L = wrapping_loop_t<T>;
  const auto& table = loops<SimpleGemmLoops<L>>(options.max_level);
  const Scratch rows_of_b(options.cache, transpose_b ? static_cast<std::size_t>(k * n) * sizeof(T) : 0);
  if (transpose_b) {
    T* to = rows_of_b.as<T>();
    pool.parallel_for(k, static_cast<double>(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t q = begin; q < end; ++q) to[q * n + j] = b[j * k + q];
      }
    });
    b = to;
  }
  const double cost_ns = static_cast<double>(n) * static_cast<double>(k) / 2;
  pool.parallel_for(m, cost_ns, [&](std::int64_t begin, std::int64_t end) {
    const L* left = as_wrapping_loop(a) + (k == 0 ? 0 : transpose_a ? begin : begin * k);
    table.direct(end - begin, n, k, left, transpose_a ? 1 : k, transpose_a ? m : 1, as_wrapping_loop(b), n,
                 as_wrapping_loop(c) + begin * n, n, epilogue.accumulate);
  });
}

template <class T>
void gemm(ThreadPool& pool, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
          const T* a, const T* b, T* c, const Epilogue<T>& epilogue, const CpuOptions& options) {
  if (m <= 0 || n <= 0) return;
  if constexpr (std::is_floating_point_v<T>) {
    multiply_as_lies(transpose_a, transpose_b, m, n, k, a, b, c, epilogue, options,
                     [&](const Product<T>& product) { gemm_real(pool, product, options); });
  } else if constexpr (is_16_bit_float<T>) {
    gemm_16_bit(pool, transpose_a, transpose_b, m, n, k, a, b, c, epilogue, options);
  } else {
    if constexpr (is_complex_element<T>) {
      if (!has_few_rows(transpose_b, m, n, k)) {
        return gemm_complex(pool, transpose_a, transpose_b, m, n, k, a, b, c, epilogue, options);
      }
    }
    gemm_simple(pool, transpose_a, transpose_b, m, n, k, a, b, c, epilogue, options);
  }
}

template <class T>
void batched_gemm(ThreadPool& pool, std::int64_t batch, const BatchStrides& strides, bool transpose_a, bool transpose_b,
                  std::int64_t m, std::int64_t n, std::int64_t k, const T* a, const T* b, T* c,
                  const Epilogue<T>& epilogue, const CpuOptions& options) {
  if (m <= 0 || n <= 0) return;
  const auto one = [&](ThreadPool& threads, std::int64_t i) {
    gemm(threads, transpose_a, transpose_b, m, n, k, a + i * strides.a, b + i * strides.b, c + i * strides.c, epilogue,
         options);
  };
  // Many products: one after the other in each thread. Few and large ones: each by all threads.
  if (batch >= 2 * pool.num_threads()) {
    const double cost_ns = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / 24.0 + 50;
    pool.parallel_for(batch, cost_ns, [&](std::int64_t begin, std::int64_t end) {
      InlinePool serial;
      for (std::int64_t i = begin; i < end; ++i) one(serial, i);
    });
  } else {
    for (std::int64_t i = 0; i < batch; ++i) one(pool, i);
  }
}

}  // namespace dflow::cpu
