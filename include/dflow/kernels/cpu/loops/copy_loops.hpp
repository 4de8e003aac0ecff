#pragma once

#include <dflow/kernels/cpu/loops/shuffles.hpp>

/// Transposes and strided copies of elements of some size, for any element type.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

#if defined(__clang__)
#pragma clang diagnostic push
// A piece may lie at any address. Templates that take a piece are instantiated for its bare type and load and store
// without alignment.
#pragma clang diagnostic ignored "-Walign-mismatch"
#endif

/// Memory of `bytes` bytes that may be part of anything, and lie anywhere: a run of small elements counts as one piece.
template <int bytes>
struct Piece;
template <>
struct Piece<1> {
  typedef uint8_t type __attribute__((may_alias));
};
template <>
struct Piece<2> {
  typedef uint16_t type __attribute__((may_alias, aligned(1)));
};
template <>
struct Piece<4> {
  typedef float type __attribute__((may_alias, aligned(1)));
};
template <>
struct Piece<8> {
  typedef double type __attribute__((may_alias, aligned(1)));
};
struct __attribute__((may_alias, packed)) SixteenBytes {
  uint64_t halves[2];
};
template <>
struct Piece<16> {
  using type = SixteenBytes;
};

/// Writes a cache line past the caches, which then need not read it first; `to` is at a multiple of 64 bytes.
DFLOW_LANE void stream_line(void* to, const void* from) {
#if defined(__clang__)
  using Line = VecOf<float, 64>::type;
  __builtin_nontemporal_store(*static_cast<const Line*>(from), static_cast<Line*>(to));
#elif defined(__AVX512F__)
  using Words = VecOf<long long, 64>::type;
  __builtin_ia32_movntdq512(static_cast<Words*>(to), *static_cast<const Words*>(from));
#elif defined(__AVX__)
  using Words = VecOf<long long, 32>::type;
  __builtin_ia32_movntdq256(static_cast<Words*>(to), static_cast<const Words*>(from)[0]);
  __builtin_ia32_movntdq256(static_cast<Words*>(to) + 1, static_cast<const Words*>(from)[1]);
#elif defined(__SSE2__)
  using Words = VecOf<long long, 16>::type;
  for (int i = 0; i < 4; ++i) {
    __builtin_ia32_movntdq(static_cast<Words*>(to) + i, static_cast<const Words*>(from)[i]);
  }
#else
  __builtin_memcpy(to, from, 64);
#endif
}

/// Makes streamed lines visible in order with later writes.
DFLOW_LANE void end_of_stream() {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#endif
}

template <int bytes>
void transpose_pieces(int64_t rows, int64_t columns, const void* from, int64_t from_stride, void* to, int64_t to_stride,
                      bool stream) {
  using T = typename Piece<bytes>::type;
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  if constexpr (bytes == 16) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) y[c * to_stride + r] = x[r * from_stride + c];
    }
  } else if (rows * columns * bytes <= 32768) {
    transpose_matrix<T>(rows, columns, x, from_stride, y, to_stride);
  } else {
    // Squares by way of a buffer with rows that are whole cache lines of the result. Each line is read and written
    // once, even if strides are powers of two and the lines of a square fall into one set of the cache.
    constexpr int64_t line = 64 / bytes;
    constexpr int64_t side = line < 32 ? 32 : line;
    alignas(64) T square[side * side];
    for (int64_t r = 0; r < rows; r += side) {
      const int64_t height = min_of(side, rows - r);
      for (int64_t c = 0; c < columns; c += side) {
        const int64_t width = min_of(side, columns - c);
        transpose_matrix<T>(height, width, x + r * from_stride + c, from_stride, square, side);
        for (int64_t i = 0; i < width; ++i) {
          T* row = y + (c + i) * to_stride + r;
          const T* filled = square + i * side;
          if (stream && height == side) {
            for (int64_t j = 0; j < side; j += line) stream_line(row + j, filled + j);
          } else if (height == side) {
            __builtin_memcpy(row, filled, static_cast<size_t>(side * bytes));
          } else {
            for (int64_t j = 0; j < height; ++j) copy_element(row + j, filled + j);
          }
        }
      }
    }
    if (stream) end_of_stream();
  }
}

template <int bytes>
void copy_strided(int64_t n, const void* from, int64_t from_stride, void* to, int64_t to_stride) {
  using T = typename Piece<bytes>::type;
  const T* DFLOW_RESTRICT x = static_cast<const T*>(from);
  T* DFLOW_RESTRICT y = static_cast<T*>(to);
  if (to_stride == 1) {
    if (from_stride == 0) {
      const T value = x[0];
      for (int64_t i = 0; i < n; ++i) y[i] = value;
    } else if (from_stride == -1) {
      for (int64_t i = 0; i < n; ++i) y[i] = x[-i];
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = x[i * from_stride];
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i * to_stride] = x[i * from_stride];
}

template <int bytes>
inline constexpr CopyLoops<bytes> copy_table = {transpose_pieces<bytes>, copy_strided<bytes>};
template <int bytes>
struct TableOf<CopyLoops<bytes>> {
  static constexpr const CopyLoops<bytes>& value = copy_table<bytes>;
};

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
