#pragma once

#include <dflow/io/proto/proto_writer.hpp>

#include <cassert>

namespace dflow {

void ProtoWriter::tag(std::uint32_t number, std::uint32_t wire_type) {
  assert(number >= 1 && number < std::uint32_t{1} << 29);
  out_.varint(std::uint64_t{number} << 3 | wire_type);
}

void ProtoWriter::uint64(std::uint32_t number, std::uint64_t value) {
  tag(number, 0);
  out_.varint(value);
}

void ProtoWriter::sint64(std::uint32_t number, std::int64_t value) {
  tag(number, 0);
  out_.signed_varint(value);
}

void ProtoWriter::fixed32(std::uint32_t number, std::uint32_t value) {
  tag(number, 5);
  out_.u32(value);
}

void ProtoWriter::fixed64(std::uint32_t number, std::uint64_t value) {
  tag(number, 1);
  out_.u64(value);
}

void ProtoWriter::float32(std::uint32_t number, float value) {
  tag(number, 5);
  out_.f32(value);
}

void ProtoWriter::float64(std::uint32_t number, double value) {
  tag(number, 1);
  out_.f64(value);
}

void ProtoWriter::bytes(std::uint32_t number, std::string_view value) {
  tag(number, 2);
  out_.string(value);
}

template <class T>
void ProtoWriter::packed_varints(std::uint32_t number, std::span<const T> values) {
  const std::size_t start = begin_message(number);
  for (const T value : values) out_.varint(static_cast<std::uint64_t>(std::int64_t{value}));
  end_message(start);
}

template <class T>
void ProtoWriter::packed_fixed(std::uint32_t number, std::span<const T> values) {
  tag(number, 2);
  out_.blob(std::as_bytes(values));
}

void ProtoWriter::packed(std::uint32_t number, std::span<const std::int64_t> values) { packed_varints(number, values); }
void ProtoWriter::packed(std::uint32_t number, std::span<const std::int32_t> values) { packed_varints(number, values); }
void ProtoWriter::packed(std::uint32_t number, std::span<const float> values) { packed_fixed(number, values); }
void ProtoWriter::packed(std::uint32_t number, std::span<const double> values) { packed_fixed(number, values); }

std::size_t ProtoWriter::begin_message(std::uint32_t number) {
  tag(number, 2);
  return text_->size();
}

void ProtoWriter::end_message(std::size_t start) {
  std::string length;
  ByteWriter(length).varint(text_->size() - start);
  text_->insert(start, length);
}

}  // namespace dflow
