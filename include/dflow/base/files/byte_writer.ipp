#pragma once

#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/status.hpp>

#include <bit>
#include <cstring>

namespace dflow {

static_assert(std::endian::native == std::endian::little, "fixed numbers are copied as they lie in memory");

void ByteWriter::append(const void* from, std::size_t size) {
  if (size == 0) return;
  if (text_ != nullptr) {
    text_->append(static_cast<const char*>(from), size);
  } else {
    const auto* first = static_cast<const std::byte*>(from);
    bytes_->insert(bytes_->end(), first, first + size);
  }
}

void ByteWriter::varint(std::uint64_t value) {
  unsigned char encoded[10];
  std::size_t size = 0;
  for (; value >= 0x80; value >>= 7) encoded[size++] = static_cast<unsigned char>(value | 0x80);
  encoded[size++] = static_cast<unsigned char>(value);
  append(encoded, size);
}

void ByteWriter::signed_varint(std::int64_t value) {
  varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

void ByteWriter::blob(std::span<const std::byte> value) {
  varint(value.size());
  append(value.data(), value.size());
}

void ByteWriter::string(std::string_view value) {
  varint(value.size());
  append(value.data(), value.size());
}

void ByteWriter::patch_u32(std::size_t position, std::uint32_t value) {
  const std::size_t size = this->position();
  if (size < sizeof(value) || position > size - sizeof(value)) {
    throw_error(Status::out_of_range(str_cat("no 4 bytes to overwrite at offset ", position, " of ", size)));
  }
  char* start = text_ != nullptr ? text_->data() : reinterpret_cast<char*>(bytes_->data());
  std::memcpy(start + position, &value, sizeof(value));
}

}  // namespace dflow
