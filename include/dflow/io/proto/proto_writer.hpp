#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/byte_writer.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dflow {

/// Appends the fields of a protocol buffer to a string, which must outlive the writer. Fields are written in the order
/// of the calls, even values that a schema would leave out as its default. `ProtoReader` is its counterpart.
///
///     ProtoWriter out(bytes);
///     out.bytes(1, "name");
///     out.packed(2, std::span<const std::int64_t>(values));
///     out.message(3, [&](ProtoWriter& shape) { shape.int64(1, rank); });
///
/// Thread safety: one thread at a time.
class ProtoWriter {
 public:
  explicit ProtoWriter(std::string& out) noexcept : text_(&out), out_(out) {}

  void uint64(std::uint32_t number, std::uint64_t value);
  /// Negative numbers take ten bytes, int32 too.
  void int64(std::uint32_t number, std::int64_t value) { uint64(number, static_cast<std::uint64_t>(value)); }
  /// Zigzag (sint32 and sint64).
  void sint64(std::uint32_t number, std::int64_t value);
  void boolean(std::uint32_t number, bool value) { uint64(number, value ? 1 : 0); }
  void fixed32(std::uint32_t number, std::uint32_t value);
  void fixed64(std::uint32_t number, std::uint64_t value);
  void float32(std::uint32_t number, float value);
  void float64(std::uint32_t number, double value);
  void bytes(std::uint32_t number, std::string_view value);

  /// A repeated field in its packed form, even without values.
  void packed(std::uint32_t number, std::span<const std::int64_t> values);
  void packed(std::uint32_t number, std::span<const std::int32_t> values);
  void packed(std::uint32_t number, std::span<const float> values);
  void packed(std::uint32_t number, std::span<const double> values);

  /// A nested message, filled by `fill(ProtoWriter&)`, which may be given this writer itself. When the message is
  /// complete, its bytes are moved to make room for its length.
  template <std::invocable<ProtoWriter&> Fill>
  void message(std::uint32_t number, Fill fill) {
    const std::size_t start = begin_message(number);
    fill(*this);
    end_message(start);
  }

 private:
  void tag(std::uint32_t number, std::uint32_t wire_type);
  std::size_t begin_message(std::uint32_t number);
  void end_message(std::size_t start);
  template <class T>
  void packed_varints(std::uint32_t number, std::span<const T> values);
  template <class T>
  void packed_fixed(std::uint32_t number, std::span<const T> values);

  std::string* text_;
  ByteWriter out_;
};

}  // namespace dflow
