#pragma once

#include <dflow/base/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// Appends values, in the form that ByteReader reads, to a string or a vector of bytes, which must outlive it.
/// Little-endian.
///
/// Thread safety: one thread at a time.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) noexcept : text_(&out) {}
  explicit ByteWriter(std::vector<std::byte>& out) noexcept : bytes_(&out) {}

  /// Bytes in the output, including the bytes that were there before.
  std::size_t position() const noexcept { return text_ != nullptr ? text_->size() : bytes_->size(); }

  template <class T>
    requires(std::integral<T> || std::floating_point<T>) && (!std::same_as<T, bool>)
  void fixed(T value) {
    append(&value, sizeof(value));
  }
  void u8(std::uint8_t value) { fixed(value); }
  void u16(std::uint16_t value) { fixed(value); }
  void u32(std::uint32_t value) { fixed(value); }
  void u64(std::uint64_t value) { fixed(value); }
  void i32(std::int32_t value) { fixed(value); }
  void i64(std::int64_t value) { fixed(value); }
  void f32(float value) { fixed(value); }
  void f64(double value) { fixed(value); }
  void boolean(bool value) { u8(value ? 1 : 0); }

  void varint(std::uint64_t value);
  void signed_varint(std::int64_t value);
  void count(std::size_t items) { varint(items); }

  /// The bytes as they are.
  void bytes(std::span<const std::byte> value) { append(value.data(), value.size()); }
  /// A varint length, then the bytes.
  void blob(std::span<const std::byte> value);
  void string(std::string_view value);

  /// Overwrites four bytes written earlier, for a length or checksum known only now.
  /// Errors: OutOfRange if they are not all there.
  void patch_u32(std::size_t position, std::uint32_t value);

 private:
  void append(const void* from, std::size_t size);

  std::string* text_ = nullptr;
  std::vector<std::byte>* bytes_ = nullptr;
};

}  // namespace dflow
