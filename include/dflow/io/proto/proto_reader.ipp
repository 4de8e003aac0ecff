#pragma once

#include <dflow/base/status.hpp>
#include <dflow/io/proto/proto_reader.hpp>

#include <algorithm>
#include <cstring>

namespace dflow {

void ProtoReader::fail(std::string_view what) const {
  const std::string field = number_ == 0 ? std::string(", in the message") : str_cat(", field ", number_);
  throw_error(Status::data_loss(str_cat(what, field, " at offset ", field_offset_)));
}

void ProtoReader::read_tag() {
  constexpr std::uint64_t max_number = (std::uint64_t{1} << 29) - 1;
  field_offset_ = in_.position();
  const std::uint64_t tag = in_.varint();
  const std::uint64_t number = tag >> 3, type = tag & 7;
  if (number == 0 || number > max_number || type > 5) {
    throw_error(Status::data_loss(str_cat("no field has the tag ", tag, " at offset ", field_offset_)));
  }
  number_ = static_cast<std::uint32_t>(number);
  wire_type_ = static_cast<ProtoWireType>(type);
}

bool ProtoReader::next() {
  if (is_pending_) skip_value();
  is_pending_ = false;
  if (in_.at_end()) return false;
  read_tag();
  if (wire_type_ == ProtoWireType::end_group) fail("the end of a group that was not begun");
  is_pending_ = true;
  return true;
}

void ProtoReader::skip_value() {
  is_pending_ = false;
  switch (wire_type_) {
    case ProtoWireType::varint:
      return static_cast<void>(in_.varint());
    case ProtoWireType::fixed64:
      return in_.skip(8);
    case ProtoWireType::length_delimited:
      return static_cast<void>(in_.blob());
    case ProtoWireType::start_group:
      return skip_group();
    case ProtoWireType::fixed32:
      return in_.skip(4);
    case ProtoWireType::end_group:
      fail("the end of a group that was not begun");
  }
}

void ProtoReader::skip_group() {
  if (depth_left_ <= 0) fail("nesting deeper than the limit");
  const std::uint32_t group = number_;
  const std::size_t start = field_offset_;
  --depth_left_;
  while (true) {
    if (in_.at_end()) {
      throw_error(Status::data_loss(str_cat("a group does not end, field ", group, " at offset ", start)));
    }
    read_tag();
    if (wire_type_ == ProtoWireType::end_group) break;
    skip_value();
  }
  ++depth_left_;
  if (number_ != group) fail(str_cat("the end of another group than the one of field ", group));
}

void ProtoReader::expect(ProtoWireType type) {
  if (!is_pending_) fail("no value is left to be read");
  if (wire_type_ != type) fail(str_cat("wire type ", wire_type_, " where ", type, " is meant"));
  is_pending_ = false;
}

std::uint64_t ProtoReader::uint64() {
  expect(ProtoWireType::varint);
  return in_.varint();
}

std::int64_t ProtoReader::sint64() {
  expect(ProtoWireType::varint);
  return in_.signed_varint();
}

std::uint32_t ProtoReader::fixed32() {
  expect(ProtoWireType::fixed32);
  return in_.u32();
}

std::uint64_t ProtoReader::fixed64() {
  expect(ProtoWireType::fixed64);
  return in_.u64();
}

float ProtoReader::float32() {
  expect(ProtoWireType::fixed32);
  return in_.f32();
}

double ProtoReader::float64() {
  expect(ProtoWireType::fixed64);
  return in_.f64();
}

std::string_view ProtoReader::bytes() {
  expect(ProtoWireType::length_delimited);
  return in_.string();
}

ProtoReader ProtoReader::message() {
  if (depth_left_ <= 0) fail("nesting deeper than the limit");
  const std::size_t size = bytes().size();
  return {input_.substr(0, in_.position()), in_.position() - size, depth_left_ - 1};
}

ByteReader ProtoReader::contents() {
  const std::size_t size = bytes().size();
  ByteReader packed(input_.substr(0, in_.position()));
  packed.skip(in_.position() - size);
  return packed;
}

template <class T>
void ProtoReader::append_varints(std::vector<T>& values) {
  if (is_pending_ && wire_type_ == ProtoWireType::length_delimited) {
    ProtoReader ahead = *this;
    const std::string_view packed = ahead.bytes();
    const auto ends = std::count_if(packed.begin(), packed.end(), [](char byte) { return (byte & 0x80) == 0; });
    // One by one a vector grows by doubling; where many small packed fields follow each other it must go on doing so.
    const std::size_t wanted = values.size() + static_cast<std::size_t>(ends);
    if (wanted > values.capacity()) values.reserve(std::max(wanted, 2 * values.capacity()));
  }
  each_varint([&](std::uint64_t value) { values.push_back(static_cast<T>(value)); });
}

template <class T>
void ProtoReader::append_fixed(std::vector<T>& values, ProtoWireType type) {
  if (wire_type_ != ProtoWireType::length_delimited) {
    expect(type);
    values.push_back(in_.fixed<T>());
    return;
  }
  const std::string_view packed = bytes();
  if (packed.size() % sizeof(T) != 0) fail(str_cat(packed.size(), " packed bytes are no whole number of values"));
  if (packed.empty()) return;
  const std::size_t before = values.size();
  values.resize(before + packed.size() / sizeof(T));
  std::memcpy(values.data() + before, packed.data(), packed.size());
}

void ProtoReader::append_to(std::vector<std::int64_t>& values) { append_varints(values); }
void ProtoReader::append_to(std::vector<std::uint64_t>& values) { append_varints(values); }
void ProtoReader::append_to(std::vector<std::int32_t>& values) { append_varints(values); }
void ProtoReader::append_to(std::vector<std::uint32_t>& values) { append_varints(values); }
void ProtoReader::append_to(std::vector<float>& values) { append_fixed(values, ProtoWireType::fixed32); }
void ProtoReader::append_to(std::vector<double>& values) { append_fixed(values, ProtoWireType::fixed64); }

}  // namespace dflow
