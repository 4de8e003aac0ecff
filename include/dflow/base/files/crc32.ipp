#pragma once

#include <dflow/base/files/crc32.hpp>

#include <array>
#include <bit>
#include <cstring>

namespace dflow {
namespace detail {

/// tables[k][b]: the checksum of byte b followed by k zero bytes, by the reflected polynomial.
inline constexpr auto crc32_tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
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

}  // namespace detail

std::uint32_t crc32_extend(std::uint32_t crc, std::span<const std::byte> more) noexcept {
  const auto& table = detail::crc32_tables;
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

}  // namespace dflow
