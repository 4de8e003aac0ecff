#pragma once

#include <dflow/base/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow::net {

/// The purpose of a frame. The numbers go over the wire.
enum class FrameType : std::uint8_t {
  hello = 1,    ///< the first one of either side: its sender's identity and ops, its purpose, a nonce
  proof = 2,    ///< that it knows the cluster's secret
  request = 3,  ///< a message that is answered under the same request id
  reply = 4,    ///< the answer, or the error
  cancel = 5,   ///< nobody waits for the answer any more
  chunk = 6,    ///< a stretch of a tensor's bytes
  credit = 7,   ///< how many more bytes of chunks may come
  ping = 8,     ///< is answered by a pong of the same request id
  pong = 9,
  goodbye = 10,  ///< the last one of a side, and why
};

/// The header before the payload of every frame: 32 bytes, little-endian.
///
/// | bytes | what |
/// |---|---|
/// | 0 to 3 | "dflw" |
/// | 4 | version, 1 |
/// | 5 | type |
/// | 6, 7 | flags |
/// | 8 to 15 | length of the payload in bytes |
/// | 16 to 23 | request id |
/// | 24 to 27 | CRC-32C of the payload |
/// | 28 to 31 | CRC-32C of bytes 0 to 27 |
struct FrameHeader {
  static constexpr std::size_t size = 32;
  static constexpr std::uint8_t version = 1;

  FrameType type = FrameType::ping;
  /// Flags of the type: see docs/wire-format.md. Bits that a type does not know are refused by a Connection.
  std::uint16_t flags = 0;
  std::uint64_t length = 0;
  std::uint64_t request = 0;
  std::uint32_t checksum = 0;

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

using FrameHeaderBytes = std::array<std::byte, FrameHeader::size>;

FrameHeaderBytes to_bytes(const FrameHeader& header) noexcept;

/// Reads the bytes of to_bytes(), and trusts none of them. After an error the caller closes the connection, because
/// the beginning of the next frame is unknown. Errors: InvalidArgument if the bytes are not a frame; FailedPrecondition
/// for another version; DataLoss for a wrong checksum of the header; Unimplemented for an unknown type; OutOfRange
/// for a payload of more than `max_length` bytes.
FrameHeader read_frame_header(std::span<const std::byte, FrameHeader::size> bytes, std::uint64_t max_length);

/// Errors: DataLoss if the payload, in its parts, is not the payload that the header was made for.
void check_payload(const FrameHeader& header, std::span<const std::span<const std::byte>> parts);

/// The length and checksum of a payload in parts.
void describe_payload(FrameHeader& header, std::span<const std::span<const std::byte>> parts) noexcept;

}  // namespace dflow::net
