#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/status.hpp>
#include <dflow/net/protocol/frame.hpp>

#include <cstring>

namespace dflow::net {

namespace detail {

inline constexpr std::uint32_t frame_magic = 0x776c6664;  // "dflw"
inline constexpr std::size_t checked_bytes = FrameHeader::size - sizeof(std::uint32_t);

}  // namespace detail

FrameHeaderBytes to_bytes(const FrameHeader& header) noexcept {
  FrameHeaderBytes bytes;
  std::size_t at = 0;
  const auto put = [&](auto value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    at += sizeof value;
  };
  put(detail::frame_magic);
  put(FrameHeader::version);
  put(static_cast<std::uint8_t>(header.type));
  put(header.flags);
  put(header.length);
  put(header.request);
  put(header.checksum);
  put(crc32c(std::span<const std::byte>(bytes).first(detail::checked_bytes)));
  return bytes;
}

FrameHeader read_frame_header(std::span<const std::byte, FrameHeader::size> bytes, std::uint64_t max_length) {
  ByteReader in(bytes);
  if (in.u32() != detail::frame_magic) throw_error(Status::invalid_argument("what came is no frame of dflow"));
  if (const int version = in.u8(); version != FrameHeader::version) {
    throw_error(Status::failed_precondition(
        str_cat("the peer speaks version ", version, " of the protocol, not ", int{FrameHeader::version})));
  }
  const int type = in.u8();
  FrameHeader header;
  header.flags = in.u16();
  header.length = in.u64();
  header.request = in.u64();
  header.checksum = in.u32();
  if (in.u32() != crc32c(bytes.first(detail::checked_bytes))) {
    throw_error(Status::data_loss("the header of a frame has a wrong checksum"));
  }
  if (type < static_cast<int>(FrameType::hello) || type > static_cast<int>(FrameType::goodbye)) {
    throw_error(Status::unimplemented(str_cat("a frame of unknown type ", type)));
  }
  header.type = static_cast<FrameType>(type);
  if (header.length > max_length) {
    throw_error(Status::out_of_range(str_cat("a frame of ", header.length, " bytes, more than ", max_length)));
  }
  return header;
}

void describe_payload(FrameHeader& header, std::span<const std::span<const std::byte>> parts) noexcept {
  header.length = 0;
  header.checksum = 0;
  for (const std::span<const std::byte> part : parts) {
    header.length += part.size();
    header.checksum = crc32c_extend(header.checksum, part);
  }
}

void check_payload(const FrameHeader& header, std::span<const std::span<const std::byte>> parts) {
  FrameHeader found;
  describe_payload(found, parts);
  if (found.length == header.length && found.checksum == header.checksum) return;
  throw_error(Status::data_loss("the payload of a frame has a wrong checksum"));
}

}  // namespace dflow::net
