#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/parts/tensor_slices.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace dflow {

namespace detail {

/// How many bytes there are, then the number in so many, its high byte first.
void append_ordered_count(std::string& key, std::uint64_t number) {
  std::string digits;
  for (; number != 0; number >>= 8) digits += static_cast<char>(number & 0xff);
  std::reverse(digits.begin(), digits.end());
  key += static_cast<char>(digits.size());
  key += digits;
}

/// A signed number in the fewest bytes, n, that leave it 7 n bits, its high byte first. The upper n bits are copies of
/// the sign bit, inverted.
void append_ordered_signed(std::string& key, std::int64_t number) {
  std::size_t size = 1;
  for (std::uint64_t rest = static_cast<std::uint64_t>(number < 0 ? ~number : number) >> 6; rest != 0; rest >>= 7) {
    ++size;
  }
  std::array<unsigned char, 10> bytes{};
  for (std::size_t i = 0; i < size; ++i) {
    bytes[size - 1 - i] = static_cast<unsigned char>(number >> std::min<std::size_t>(8 * i, 63) & 0xff);
  }
  for (std::size_t bit = 0; bit < size; ++bit) bytes[bit / 8] ^= static_cast<unsigned char>(0x80 >> bit % 8);
  key.append(reinterpret_cast<const char*>(bytes.data()), size);
}

void append_ordered_text(std::string& key, std::string_view text) {
  for (const char c : text) {
    key += c;
    if (c == '\0') key += '\xff';
    if (c == '\xff') key += '\0';
  }
  key += std::string_view("\0\1", 2);
}

[[noreturn]] void fail_part(std::string_view what) {
  throw_error(Status::data_loss(str_cat("a slice of a tensor ", what)));
}

Shape parse_tensor_shape(ProtoReader message) {
  std::vector<std::int64_t> extents;
  while (message.next()) {
    if (message.number() == 3 && message.boolean()) message.fail("a shape of unknown rank");
    if (message.number() != 2) continue;
    ProtoReader dim = message.message();
    std::int64_t extent = 0;
    while (dim.next()) {
      if (dim.number() == 1) extent = dim.int64();
    }
    if (extent < 0) message.fail("a shape with an unknown dimension");
    if (extents.size() == static_cast<std::size_t>(max_rank)) {
      throw_error(Status::unimplemented(str_cat("a tensor of more than ", max_rank, " dimensions")));
    }
    extents.push_back(extent);
  }
  if (!try_product(extents)) throw_error(Status::data_loss("a shape whose extents multiply past 2^63"));
  return Shape(std::span<const std::int64_t>(extents));
}

void parse_or_note(Status& problem, FunctionRef<void()> parse) {
  try {
    parse();
  } catch (const Error& error) {
    if (error.code() != Code::unimplemented) throw;
    problem = error.status();
  }
}

DType dtype_or_note(Status& problem, std::uint32_t number) {
  if (!problem.ok()) return DType::invalid;
  const std::optional<DType> dtype = dtype_from_number(number);
  if (dtype && is_element(*dtype)) return *dtype;
  problem = Status::unimplemented(str_cat("its elements are of TensorFlow's type ", number));
  return DType::invalid;
}

AnyTensor assembled(DType dtype, const Shape& whole, std::span<const TensorPart> parts) {
  std::int64_t total = 0;
  for (const TensorPart& part : parts) {
    if (part.tensor.num_elements() > whole.num_elements() - total) fail_part("overlaps another one");
    total += part.tensor.num_elements();
  }
  if (total != whole.num_elements()) fail_part("is missing");
  AnyTensor result(dtype, whole);
  std::vector<bool> is_set(static_cast<std::size_t>(total));
  for (const TensorPart& part : parts) {
    const Shape& extent = part.tensor.shape();
    const std::int64_t run = extent.is_scalar() ? 1 : extent[extent.rank() - 1];
    std::array<std::int64_t, max_rank> index{};
    for (std::int64_t from = 0; from < part.tensor.num_elements(); from += run) {
      std::int64_t to = 0;
      for (int d = 0; d < whole.rank(); ++d) {
        const auto at = static_cast<std::size_t>(d);
        to = to * whole[d] + part.begin[at] + index[at];
      }
      for (std::int64_t i = to; i < to + run; ++i) {
        if (is_set[static_cast<std::size_t>(i)]) fail_part("overlaps another one");
        is_set[static_cast<std::size_t>(i)] = true;
      }
      if (dtype == DType::string) {
        std::copy_n(part.tensor.span<std::string>().begin() + from, run, result.span<std::string>().begin() + to);
      } else {
        const auto size = static_cast<std::int64_t>(size_of(dtype));
        std::memcpy(static_cast<std::byte*>(result.raw_data()) + to * size,
                    static_cast<const std::byte*>(part.tensor.raw_data()) + from * size,
                    static_cast<std::size_t>(run * size));
      }
      for (int d = extent.rank() - 2; d >= 0 && ++index[static_cast<std::size_t>(d)] == extent[d]; --d) {
        index[static_cast<std::size_t>(d)] = 0;
      }
    }
  }
  return result;
}

}  // namespace detail

TensorSlice TensorSlice::parse(ProtoReader message) {
  TensorSlice slice;
  while (message.next()) {
    if (message.number() != 1) continue;
    ProtoReader extent = message.message();
    std::int64_t begin = 0, length = all;
    while (extent.next()) {
      if (extent.number() == 1) begin = extent.int64();
      if (extent.number() == 2) length = extent.int64();
    }
    if (begin < 0 || length < all || (length == all && begin != 0)) message.fail("a slice that is none");
    if (slice.begin.size() == static_cast<std::size_t>(max_rank)) {
      throw_error(Status::unimplemented(str_cat("a tensor of more than ", max_rank, " dimensions")));
    }
    slice.begin.push_back(begin);
    slice.length.push_back(length);
  }
  return slice;
}

TensorSlice TensorSlice::whole(int rank) {
  const auto dims = static_cast<std::size_t>(rank);
  return {std::vector<std::int64_t>(dims), std::vector<std::int64_t>(dims, all)};
}

Shape TensorSlice::shape_in(const Shape& whole) const {
  if (begin.size() != static_cast<std::size_t>(whole.rank())) detail::fail_part("has another rank");
  std::vector<std::int64_t> extents;
  for (int d = 0; d < whole.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    const std::int64_t extent = length[at] == all ? whole[d] : length[at];
    if (begin[at] > whole[d] || extent > whole[d] - begin[at]) detail::fail_part("reaches past the whole");
    extents.push_back(extent);
  }
  return Shape(std::span<const std::int64_t>(extents));
}

std::string TensorSlice::key(std::string_view tensor_name) const {
  std::string key;
  detail::append_ordered_count(key, 0);
  detail::append_ordered_text(key, tensor_name);
  detail::append_ordered_count(key, begin.size());
  for (std::size_t i = 0; i < begin.size(); ++i) {
    detail::append_ordered_signed(key, begin[i]);
    detail::append_ordered_signed(key, length[i]);
  }
  return key;
}

}  // namespace dflow
