#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/compression/snappy.hpp>

namespace dflow {

namespace detail {

/// A number of `size` bytes, little-endian.
std::uint64_t little_endian(ByteReader& in, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{in.u8()} << (8 * i);
  return value;
}

}  // namespace detail

std::string unsnappy(std::span<const std::byte> packed, std::uint64_t max_bytes) {
  // At best three bytes stand for a copy of 64.
  constexpr std::uint64_t most_expansion = 22;
  const auto damaged = [](const ByteReader& in, std::string_view what) {
    throw_error(Status::data_loss(str_cat("the snappy stream is damaged: ", what, " at offset ", in.position())));
  };
  ByteReader in(packed);
  const std::uint64_t size = in.varint();
  if (size / most_expansion > packed.size()) damaged(in, "a size that it cannot hold");
  if (size > max_bytes)
    throw_error(Status::resource_exhausted(str_cat("the unpacked content exceeds ", max_bytes, " bytes")));
  std::string content;
  content.reserve(static_cast<std::size_t>(size));
  while (!in.at_end()) {
    const std::uint8_t tag = in.u8();
    std::uint64_t length = (tag >> 2) + std::uint64_t{1}, offset = 0;
    switch (tag & 3) {
      case 0:  // as it is; a length of more than 60 follows in 1 to 4 bytes
        if (length > 60) length = detail::little_endian(in, static_cast<std::size_t>(length - 60)) + 1;
        break;
      case 1:
        length = (tag >> 2 & 7) + std::uint64_t{4};
        offset = std::uint64_t{tag} >> 5 << 8 | in.u8();
        break;
      case 2:
        offset = in.u16();
        break;
      default:
        offset = in.u32();
    }
    if (length > size - content.size()) damaged(in, "more than its size");
    if ((tag & 3) == 0) {
      const std::span<const std::byte> literal = in.bytes(static_cast<std::size_t>(length));
      content.append(reinterpret_cast<const char*>(literal.data()), literal.size());
      continue;
    }
    if (offset == 0 || offset > content.size()) damaged(in, "a copy of what is not there");
    // Byte by byte: a copy may overlap its own result.
    for (std::uint64_t i = 0; i < length; ++i) content += content[content.size() - static_cast<std::size_t>(offset)];
  }
  if (content.size() != size) damaged(in, "less than its size");
  return content;
}

}  // namespace dflow
