#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/byte_reader.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dflow {

/// How a field of a protocol buffer is laid out (developers.google.com/protocol-buffers/docs/encoding).
enum class ProtoWireType : std::uint8_t {
  varint = 0,
  fixed64 = 1,
  length_delimited = 2,
  start_group = 3,
  end_group = 4,
  fixed32 = 5,
};

/// Reads the fields of an untrusted protocol buffer, without its schema, in the order they are in. A field that is not
/// read is skipped. Texts and nested messages are views into the input. Only `append_to` allocates, and it makes room
/// for the values that are there, not for an announced number.
///
///     ProtoReader in(bytes);
///     while (in.next()) {
///       if (in.number() == 1) name = in.bytes();
///       if (in.number() == 2) in.append_to(values);  // repeated, packed or not
///       if (in.number() == 3) parse_shape(in.message());
///     }
///
/// Groups are skipped, also as unknown fields. The value of a field is read once.
///
/// Thread safety: one thread at a time.
/// Errors: throws Error: DataLoss, with the offset in the outermost message. The causes are input that is cut short or
/// malformed, a field of another wire type than is asked for, and nesting deeper than the limit.
class ProtoReader {
 public:
  static constexpr int default_max_depth = 64;

  explicit ProtoReader(std::string_view message, int max_depth = default_max_depth) noexcept
      : input_(message), in_(message), depth_left_(max_depth) {}

  /// Goes to the next field, past the value of the one before; false at the end of the message.
  bool next();
  /// The number of the field that `next` came to; 0 before the first.
  std::uint32_t number() const noexcept { return number_; }
  ProtoWireType wire_type() const noexcept { return wire_type_; }
  /// The offset of that field's tag in the outermost message; before the first field, the offset of the message
  /// itself.
  std::size_t offset() const noexcept { return field_offset_; }

  std::uint64_t uint64();
  std::int64_t int64() { return static_cast<std::int64_t>(uint64()); }
  /// The low 32 bits, as protocol buffers have it; also an enumeration's number.
  std::int32_t int32() { return static_cast<std::int32_t>(static_cast<std::uint32_t>(uint64())); }
  std::uint32_t uint32() { return static_cast<std::uint32_t>(uint64()); }
  /// Zigzag (sint32 and sint64).
  std::int64_t sint64();
  bool boolean() { return uint64() != 0; }
  std::uint32_t fixed32();
  std::uint64_t fixed64();
  float float32();
  double float64();
  /// A string, bytes, or the content of a packed field.
  std::string_view bytes();
  /// A nested message, one level deeper. It stays valid as long as the input, also after further reads here.
  ProtoReader message();

  /// Appends the values of a repeated field, packed or one by one: int64, uint64, int32 and uint32 as varints, float
  /// and double as fixed numbers.
  void append_to(std::vector<std::int64_t>& values);
  void append_to(std::vector<std::uint64_t>& values);
  void append_to(std::vector<std::int32_t>& values);
  void append_to(std::vector<std::uint32_t>& values);
  void append_to(std::vector<float>& values);
  void append_to(std::vector<double>& values);

  /// Calls `take(std::uint64_t)` with each varint of a repeated field, packed or one by one.
  template <std::invocable<std::uint64_t> Take>
  void each_varint(Take take) {
    if (wire_type_ != ProtoWireType::length_delimited) return static_cast<void>(take(uint64()));
    for (ByteReader packed = contents(); !packed.at_end();) take(packed.varint());
  }

  /// DataLoss of the current field, or before the first of the message: `what`, the number and the offset.
  [[noreturn]] void fail(std::string_view what) const;

 private:
  ProtoReader(std::string_view input, std::size_t begin, int depth_left) : ProtoReader(input, depth_left) {
    in_.skip(begin);
    field_offset_ = begin;
  }
  void expect(ProtoWireType type);
  void read_tag();
  void skip_value();
  void skip_group();
  /// The contents of a field that is length delimited; positions are positions in the input.
  ByteReader contents();
  template <class T>
  void append_varints(std::vector<T>& values);
  template <class T>
  void append_fixed(std::vector<T>& values, ProtoWireType type);

  std::string_view input_;  ///< the outermost message up to the end of this one: its positions are the offsets
  ByteReader in_;
  std::size_t field_offset_ = 0;
  std::uint32_t number_ = 0;
  ProtoWireType wire_type_ = ProtoWireType::varint;
  bool is_pending_ = false;  ///< the current field's value has not been read
  int depth_left_;
};

}  // namespace dflow
