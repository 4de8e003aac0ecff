#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/status.hpp>

#include <bit>

namespace dflow {

static_assert(std::endian::native == std::endian::little, "fixed numbers are copied as they lie in memory");

void ByteReader::fail_short(std::uint64_t size) const {
  throw_error(Status::data_loss(
      str_cat("input ends early: ", size, " bytes needed at offset ", position_, ", ", remaining(), " left")));
}

void ByteReader::fail_malformed(const char* what, std::size_t offset) const {
  throw_error(Status::data_loss(str_cat(what, " at offset ", offset)));
}

bool ByteReader::boolean() {
  require(1);
  const auto byte = std::to_integer<unsigned>(input_[position_]);
  if (byte > 1) fail_malformed("a boolean that is neither 0 nor 1", position_);
  ++position_;
  return byte != 0;
}

std::uint64_t ByteReader::varint() {
  std::uint64_t value = 0;
  std::size_t at = position_;
  for (int shift = 0; shift < 64; shift += 7, ++at) {
    if (at == input_.size()) fail_short(at - position_ + 1);
    const auto byte = std::to_integer<std::uint64_t>(input_[at]);
    if (shift == 63 && byte > 1) break;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      position_ = at + 1;
      return value;
    }
  }
  fail_malformed("a varint of more than 64 bits", position_);
}

std::int64_t ByteReader::signed_varint() {
  const std::uint64_t zigzag = varint();
  return static_cast<std::int64_t>((zigzag >> 1) ^ (~(zigzag & 1) + 1));
}

std::span<const std::byte> ByteReader::bytes(std::size_t size) {
  require(size);
  const auto result = input_.subspan(position_, size);
  position_ += size;
  return result;
}

void ByteReader::skip(std::size_t size) { (void)bytes(size); }

std::span<const std::byte> ByteReader::blob() {
  const std::size_t start = position_;
  const std::uint64_t size = varint();
  const std::size_t after_length = position_;
  position_ = start;
  if (size > limits_.max_length) {
    throw_error(Status::out_of_range(
        str_cat("a length of ", size, " bytes at offset ", start, " is over the limit of ", limits_.max_length)));
  }
  if (size > input_.size() - after_length) fail_short(after_length - start + size);
  position_ = after_length + static_cast<std::size_t>(size);
  return input_.subspan(after_length, static_cast<std::size_t>(size));
}

std::string_view ByteReader::string() {
  const auto text = blob();
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

std::size_t ByteReader::count(std::size_t min_bytes_each) {
  const std::size_t start = position_;
  const std::uint64_t items = varint();
  const std::size_t after_count = std::exchange(position_, start);
  if (items > limits_.max_count) {
    throw_error(Status::out_of_range(
        str_cat("a count of ", items, " at offset ", start, " is over the limit of ", limits_.max_count)));
  }
  if (min_bytes_each != 0 && items > (input_.size() - after_count) / min_bytes_each) {
    throw_error(Status::data_loss(str_cat("input ends early: ", items, " items of at least ", min_bytes_each,
                                          " bytes announced at offset ", start, ", ", input_.size() - after_count,
                                          " bytes left")));
  }
  position_ = after_count;
  return static_cast<std::size_t>(items);
}

void ByteReader::expect_end() const {
  if (!at_end()) {
    throw_error(Status::data_loss(str_cat(remaining(), " bytes left over at offset ", position_)));
  }
}

ByteReader::Level ByteReader::enter() {
  if (depth_ >= limits_.max_depth) {
    throw_error(Status::out_of_range(
        str_cat("nesting deeper than the limit of ", limits_.max_depth, " at offset ", position_)));
  }
  ++depth_;
  return Level(*this);
}

}  // namespace dflow
