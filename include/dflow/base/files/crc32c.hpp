#pragma once

#include <dflow/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dflow {

/// Extends the checksum `crc` of some bytes by the bytes `more` that follow them: CRC-32C (Castagnoli), as in iSCSI
/// (RFC 3720) and TFRecord files. By SSE4.2 where the processor has it.
std::uint32_t crc32c_extend(std::uint32_t crc, std::span<const std::byte> more) noexcept;

inline std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept { return crc32c_extend(0, bytes); }
inline std::uint32_t crc32c(std::string_view text) noexcept {
  return crc32c_extend(0, std::as_bytes(std::span(text.data(), text.size())));
}

/// Rotated and offset, as TFRecord stores checksums: the checksum of data that embeds its own checksums is weak.
constexpr std::uint32_t mask_crc32c(std::uint32_t crc) noexcept { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
constexpr std::uint32_t unmask_crc32c(std::uint32_t masked) noexcept {
  const std::uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

namespace detail {
/// The portable way (slicing by 8), there to be tested against the other.
std::uint32_t crc32c_extend_by_tables(std::uint32_t crc, std::span<const std::byte> more) noexcept;
}  // namespace detail

}  // namespace dflow
