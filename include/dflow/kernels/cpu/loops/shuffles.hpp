#pragma once

#include <dflow/kernels/cpu/loops/lanes.hpp>

/// Transposes of small blocks in registers.
namespace dflow::cpu::DFLOW_CPU_VARIANT {

/// Bytes of the registers that blocks are transposed in; wider ones gain nothing, since a block would be 16 x 16.
#if defined(__AVX__)
inline constexpr int shuffle_bytes = 32;
#else
inline constexpr int shuffle_bytes = 16;
#endif

/// Transposes a block of `size` x `size` elements; rows of `from` are from_stride elements apart.
template <int element_bytes>
struct BlockTranspose;

template <>
struct BlockTranspose<1> {
  using Bytes = VecOf<uint8_t, 16>::type;
  static constexpr int size = 16;
  static DFLOW_LANE void run(const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride) {
    Bytes x[16], y[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) __builtin_memcpy(&x[i], from + i * from_stride, 16);
#pragma GCC unroll 4
    for (int round = 0; round < 4; ++round) {
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        y[2 * i] = __builtin_shufflevector(x[i], x[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        y[2 * i + 1] =
            __builtin_shufflevector(x[i], x[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      }
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) x[i] = y[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) __builtin_memcpy(to + i * to_stride, &x[i], 16);
  }
};

template <>
struct BlockTranspose<2> {
  using Words = VecOf<uint16_t, 16>::type;
  static constexpr int size = 8;
  static DFLOW_LANE void run(const uint16_t* from, int64_t from_stride, uint16_t* to, int64_t to_stride) {
    Words x[8], y[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) __builtin_memcpy(&x[i], from + i * from_stride, 16);
#pragma GCC unroll 3
    for (int round = 0; round < 3; ++round) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        y[2 * i] = __builtin_shufflevector(x[i], x[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
      }
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) x[i] = y[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) __builtin_memcpy(to + i * to_stride, &x[i], 16);
  }
};

#if defined(__AVX__)

template <>
struct BlockTranspose<4> {
  using Singles = VecOf<float, 32>::type;
  static constexpr int size = 8;
  static DFLOW_LANE void run(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
    Singles x[8], y[8];
    // Halves of rows i and i + 4 side by side, so that the rest stays within 16-byte lanes.
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      VecOf<float, 16>::type a, b, c, d;
      __builtin_memcpy(&a, from + i * from_stride, 16);
      __builtin_memcpy(&b, from + (i + 4) * from_stride, 16);
      __builtin_memcpy(&c, from + i * from_stride + 4, 16);
      __builtin_memcpy(&d, from + (i + 4) * from_stride + 4, 16);
      x[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
      x[i + 4] = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
    }
#pragma GCC unroll 2
    for (int h = 0; h < 8; h += 4) {
#pragma GCC unroll 2
      for (int i = 0; i < 4; i += 2) {
        y[h + i] = __builtin_shufflevector(x[h + i], x[h + i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        y[h + i + 1] = __builtin_shufflevector(x[h + i], x[h + i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
      }
      x[h] = __builtin_shufflevector(y[h], y[h + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      x[h + 1] = __builtin_shufflevector(y[h], y[h + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      x[h + 2] = __builtin_shufflevector(y[h + 1], y[h + 3], 0, 1, 8, 9, 4, 5, 12, 13);
      x[h + 3] = __builtin_shufflevector(y[h + 1], y[h + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) __builtin_memcpy(to + i * to_stride, &x[i], 32);
  }
};

template <>
struct BlockTranspose<8> {
  using Doubles = VecOf<double, 32>::type;
  static constexpr int size = 4;
  static DFLOW_LANE void run(const double* from, int64_t from_stride, double* to, int64_t to_stride) {
    Doubles x[4], y[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) __builtin_memcpy(&x[i], from + i * from_stride, 32);
#pragma GCC unroll 2
    for (int i = 0; i < 4; i += 2) {
      y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 4, 2, 6);
      y[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 1, 5, 3, 7);
    }
    x[0] = __builtin_shufflevector(y[0], y[2], 0, 1, 4, 5);
    x[1] = __builtin_shufflevector(y[1], y[3], 0, 1, 4, 5);
    x[2] = __builtin_shufflevector(y[0], y[2], 2, 3, 6, 7);
    x[3] = __builtin_shufflevector(y[1], y[3], 2, 3, 6, 7);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) __builtin_memcpy(to + i * to_stride, &x[i], 32);
  }
};

#else

template <>
struct BlockTranspose<4> {
  using Singles = VecOf<float, 16>::type;
  static constexpr int size = 4;
  static DFLOW_LANE void run(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
    Singles x[4], y[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) __builtin_memcpy(&x[i], from + i * from_stride, 16);
#pragma GCC unroll 2
    for (int round = 0; round < 2; ++round) {
      y[0] = __builtin_shufflevector(x[0], x[2], 0, 4, 1, 5);
      y[1] = __builtin_shufflevector(x[0], x[2], 2, 6, 3, 7);
      y[2] = __builtin_shufflevector(x[1], x[3], 0, 4, 1, 5);
      y[3] = __builtin_shufflevector(x[1], x[3], 2, 6, 3, 7);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) x[i] = y[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) __builtin_memcpy(to + i * to_stride, &x[i], 16);
  }
};

template <>
struct BlockTranspose<8> {
  using Doubles = VecOf<double, 16>::type;
  static constexpr int size = 2;
  static DFLOW_LANE void run(const double* from, int64_t from_stride, double* to, int64_t to_stride) {
    Doubles a, b;
    __builtin_memcpy(&a, from, 16);
    __builtin_memcpy(&b, from + from_stride, 16);
    const Doubles low = __builtin_shufflevector(a, b, 0, 2);
    const Doubles high = __builtin_shufflevector(a, b, 1, 3);
    __builtin_memcpy(to, &low, 16);
    __builtin_memcpy(to + to_stride, &high, 16);
  }
};

#endif

/// *to = *from; neither need be aligned.
template <class T>
DFLOW_LANE void copy_element(T* to, const T* from) {
  __builtin_memcpy(to, from, sizeof(T));
}

/// to[c, r] = from[r, c] for from [rows, columns]; neither need be aligned.
template <class T>
DFLOW_LANE void transpose_matrix(int64_t rows, int64_t columns, const T* DFLOW_RESTRICT from, int64_t from_stride,
                                 T* DFLOW_RESTRICT to, int64_t to_stride) {
  using Block = BlockTranspose<sizeof(T)>;
  constexpr int64_t size = Block::size;
  int64_t c = 0;
  for (; c + size <= columns; c += size) {
    int64_t r = 0;
    for (; r + size <= rows; r += size) {
      Block::run(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
    }
    for (; r < rows; ++r) {
      for (int64_t l = 0; l < size; ++l) copy_element(to + (c + l) * to_stride + r, from + r * from_stride + c + l);
    }
  }
  for (; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) copy_element(to + c * to_stride + r, from + r * from_stride + c);
  }
}

}  // namespace dflow::cpu::DFLOW_CPU_VARIANT
