#pragma once

#include <dflow/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dflow {

/// Extends the checksum `crc` of some bytes by the bytes `more` that follow them: CRC-32 as in gzip, ZIP and PNG (ISO
/// 3309; RFC 1952, section 8). Slicing by 8.
std::uint32_t crc32_extend(std::uint32_t crc, std::span<const std::byte> more) noexcept;

inline std::uint32_t crc32(std::span<const std::byte> bytes) noexcept { return crc32_extend(0, bytes); }
inline std::uint32_t crc32(std::string_view text) noexcept {
  return crc32_extend(0, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace dflow
