#pragma once

#include <dflow/base/files/crc32c.hpp>

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dflow {
namespace detail {

/// tables[k][b]: the checksum of byte b followed by k zero bytes, by the reflected polynomial.
inline constexpr auto crc32c_tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t previous = tables[k - 1][byte];
      tables[k][byte] = (previous >> 8) ^ tables[0][previous & 0xff];
    }
  }
  return tables;
}();

std::uint32_t crc32c_extend_by_tables(std::uint32_t crc, std::span<const std::byte> more) noexcept {
  const auto& table = crc32c_tables;
  const std::byte* at = more.data();
  std::size_t left = more.size();
  crc = ~crc;
  if constexpr (std::endian::native == std::endian::little) {
    for (; left >= 8; left -= 8, at += 8) {
      std::uint32_t low;
      std::uint32_t high;
      std::memcpy(&low, at, 4);
      std::memcpy(&high, at + 4, 4);
      low ^= crc;
      crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
            table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^ table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
    }
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ table[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)

/// The product of two polynomials over GF(2) modulo the checksum's, bits reflected, as zlib's crc32_combine computes
/// it.
constexpr std::uint32_t crc32c_product(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return product;
}

/// x^n modulo the checksum's polynomial, bits reflected.
constexpr std::uint32_t crc32c_power(std::uint32_t n) noexcept {
  std::uint32_t power = 0x80000000u, square = 0x40000000u;  // 1, x
  for (; n != 0; n >>= 1, square = crc32c_product(square, square)) {
    if ((n & 1) != 0) power = crc32c_product(power, square);
  }
  return power;
}

/// The factors for the halves of 128 bits. The sum of the two products is congruent to the bits followed by the given
/// number of zeros: x^(zeros + 63) for the first half, x^(zeros - 1) for the second. A carry-less product of reflected
/// bits has one more factor x (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
/// Instruction", Intel 2009).
struct Crc32cShift {
  long long first;
  long long second;
  constexpr explicit Crc32cShift(std::uint32_t zeros)
      : first(static_cast<long long>(std::uint64_t{crc32c_power(zeros + 63)} << 32)),
        second(static_cast<long long>(std::uint64_t{crc32c_power(zeros - 1)} << 32)) {}
};

/// The bytes of each of the three stretches that are checksummed side by side: the instruction takes three cycles, and
/// one may begin in each cycle.
inline constexpr std::size_t crc32c_stretch = 2048;

/// tables[k][b]: the state that byte k of the state, with value b, becomes by a stretch of zeros.
inline constexpr auto crc32c_zeros = [] {
  std::uint32_t power = 0x40000000u;  // x
  for (std::size_t bits = 1; bits < 8 * crc32c_stretch; bits *= 2) power = crc32c_product(power, power);
  static_assert(std::has_single_bit(crc32c_stretch));
  std::array<std::array<std::uint32_t, 256>, 4> tables{};
  for (std::uint32_t k = 0; k < 4; ++k) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) tables[k][byte] = crc32c_product(power, byte << (8 * k));
  }
  return tables;
}();

std::uint64_t crc32c_after_zeros(std::uint64_t state) noexcept {
  const auto& table = crc32c_zeros;
  return table[0][state & 0xff] ^ table[1][state >> 8 & 0xff] ^ table[2][state >> 16 & 0xff] ^
         table[3][state >> 24 & 0xff];
}

__attribute__((target("sse4.2,crc32"))) std::uint32_t crc32c_extend_by_sse42(std::uint32_t crc,
                                                                             std::span<const std::byte> more) noexcept {
  const std::byte* at = more.data();
  std::size_t left = more.size();
  std::uint64_t state = static_cast<std::uint32_t>(~crc);
  for (; left >= 3 * crc32c_stretch; left -= 3 * crc32c_stretch, at += 3 * crc32c_stretch) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = 0; i < crc32c_stretch; i += 8) {
      std::uint64_t words[3];
      std::memcpy(&words[0], at + i, 8);
      std::memcpy(&words[1], at + crc32c_stretch + i, 8);
      std::memcpy(&words[2], at + 2 * crc32c_stretch + i, 8);
      state = _mm_crc32_u64(state, words[0]);
      second = _mm_crc32_u64(second, words[1]);
      third = _mm_crc32_u64(third, words[2]);
    }
    state = crc32c_after_zeros(crc32c_after_zeros(state) ^ second) ^ third;
  }
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto state32 = static_cast<std::uint32_t>(state);
  for (; left > 0; --left, ++at) state32 = _mm_crc32_u8(state32, std::to_integer<unsigned char>(*at));
  return ~state32;
}

#define DFLOW_CRC32C_AVX512 __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2,crc32")))

/// `bits`, each 128 of them moved on by its shift, and `more`.
DFLOW_CRC32C_AVX512 inline __m512i crc32c_fold(__m512i bits, __m512i shifts, __m512i more) noexcept {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(bits, shifts, 0x00),
                                   _mm512_clmulepi64_epi128(bits, shifts, 0x11), more, 0x96);  // of three the sum
}

/// For no less than 64 bytes.
DFLOW_CRC32C_AVX512 std::uint32_t crc32c_extend_by_avx512(std::uint32_t crc, std::span<const std::byte> more) noexcept {
  static constexpr Crc32cShift by_2048(2048), by_512(512), by_384(384), by_256(256), by_128(128);
  const std::byte* at = more.data();
  std::size_t left = more.size();
  const auto next = [&]() DFLOW_CRC32C_AVX512 {
    const __m512i bits = _mm512_loadu_si512(at);
    at += 64, left -= 64;
    return bits;
  };
  __m512i sum = _mm512_xor_si512(next(), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc))));
  const __m512i on = _mm512_set4_epi64(by_512.second, by_512.first, by_512.second, by_512.first);
  if (left >= 192) {
    __m512i second = next(), third = next(), fourth = next();
    const __m512i far = _mm512_set4_epi64(by_2048.second, by_2048.first, by_2048.second, by_2048.first);
    while (left >= 256) {
      sum = crc32c_fold(sum, far, next());
      second = crc32c_fold(second, far, next());
      third = crc32c_fold(third, far, next());
      fourth = crc32c_fold(fourth, far, next());
    }
    sum = crc32c_fold(crc32c_fold(crc32c_fold(sum, on, second), on, third), on, fourth);
  }
  while (left >= 64) sum = crc32c_fold(sum, on, next());
  const __m512i apart =
      _mm512_set_epi64(0, 0, by_128.second, by_128.first, by_256.second, by_256.first, by_384.second, by_384.first);
  // Each 128 bits to where the last are, which stay.
  const __m512i moved = crc32c_fold(sum, apart, _mm512_maskz_mov_epi64(0xc0, sum));
  // By the masked form: without a mask g++ 12 warns of its own header.
  __m128i last = _mm512_maskz_extracti32x4_epi32(0xf, moved, 0);
  last = _mm_xor_si128(last, _mm512_maskz_extracti32x4_epi32(0xf, moved, 1));
  last = _mm_xor_si128(last, _mm512_maskz_extracti32x4_epi32(0xf, moved, 2));
  last = _mm_xor_si128(last, _mm512_maskz_extracti32x4_epi32(0xf, moved, 3));
  std::uint64_t state = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(last)));
  state = _mm_crc32_u64(state, static_cast<std::uint64_t>(_mm_extract_epi64(last, 1)));
  return crc32c_extend_by_sse42(~static_cast<std::uint32_t>(state), {at, left});
}

#undef DFLOW_CRC32C_AVX512
#endif

}  // namespace detail

std::uint32_t crc32c_extend(std::uint32_t crc, std::span<const std::byte> more) noexcept {
#if defined(__x86_64__)
  if (more.size() >= 128 && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512vl")) {
    return detail::crc32c_extend_by_avx512(crc, more);
  }
  if (__builtin_cpu_supports("sse4.2")) return detail::crc32c_extend_by_sse42(crc, more);
#endif
  return detail::crc32c_extend_by_tables(crc, more);
}

}  // namespace dflow
