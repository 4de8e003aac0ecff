#pragma once

#include <dflow/kernels/cpu/raw/variants/shuffles.hpp>

/// Transposes and strided copies of elements of some size, whatever their type.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

/// Memory of `bytes` bytes that may be part of anything.
template <int bytes> struct Piece;
template <> struct Piece<1> { typedef uint8_t type __attribute__((may_alias)); };
template <> struct Piece<2> { typedef uint16_t type __attribute__((may_alias)); };
template <> struct Piece<4> { typedef float type __attribute__((may_alias)); };
template <> struct Piece<8> { typedef double type __attribute__((may_alias)); };
struct __attribute__((may_alias)) SixteenBytes {
  uint64_t halves[2];
};
template <> struct Piece<16> { using type = SixteenBytes; };

template <int bytes>
void transpose_pieces(int64_t rows, int64_t columns, const void* from, int64_t from_stride, void* to,
                      int64_t to_stride) {
  using T = typename Piece<bytes>::type;
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  if constexpr (bytes == 16) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) y[c * to_stride + r] = x[r * from_stride + c];
    }
  } else {
    // Squares whose sides are whole cache lines: each line is read and written once, also where strides are powers of
    // two.
    constexpr int64_t side = 64 / bytes < 16 ? 16 : 64 / bytes;
    for (int64_t c = 0; c < columns; c += side) {
      for (int64_t r = 0; r < rows; r += side) {
        transpose_matrix<T>(min_of(side, rows - r), min_of(side, columns - c), x + r * from_stride + c, from_stride,
                            y + c * to_stride + r, to_stride);
      }
    }
  }
}

template <int bytes> void copy_strided(int64_t n, const void* from, int64_t from_stride, void* to, int64_t to_stride) {
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

template <int bytes> inline constexpr CopyLoops<bytes> copy_table = {transpose_pieces<bytes>, copy_strided<bytes>};
template <int bytes> struct TableOf<CopyLoops<bytes>> {
  static constexpr const CopyLoops<bytes>& value = copy_table<bytes>;
};

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
