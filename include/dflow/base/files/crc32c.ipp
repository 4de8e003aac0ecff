#pragma once

#include <dflow/base/files/crc32c.hpp>

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
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

DFLOW_INLINE std::uint32_t crc32c_extend_by_tables(std::uint32_t crc, std::span<const std::byte> more) noexcept {
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

/// Of each of the three stretches whose checksums are computed side by side: the instruction takes three cycles, and
/// one may begin in each.
inline constexpr std::size_t crc32c_stretch = 2048;

/// tables[k][b]: what byte k of the state, b, becomes by a stretch of zeros.
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

DFLOW_INLINE std::uint64_t crc32c_after_zeros(std::uint64_t state) noexcept {
  const auto& table = crc32c_zeros;
  return table[0][state & 0xff] ^ table[1][state >> 8 & 0xff] ^ table[2][state >> 16 & 0xff] ^
         table[3][state >> 24 & 0xff];
}

__attribute__((target("sse4.2"))) DFLOW_INLINE std::uint32_t crc32c_extend_by_sse42(
    std::uint32_t crc, std::span<const std::byte> more) noexcept {
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
#endif

}  // namespace detail

DFLOW_INLINE std::uint32_t crc32c_extend(std::uint32_t crc, std::span<const std::byte> more) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return detail::crc32c_extend_by_sse42(crc, more);
#endif
  return detail::crc32c_extend_by_tables(crc, more);
}

}  // namespace dflow
