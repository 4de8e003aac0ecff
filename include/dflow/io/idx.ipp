#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/file_kind.hpp>
#include <dflow/io/compression/gzip.hpp>
#include <dflow/io/idx.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

namespace dflow {

namespace detail {

std::optional<DType> idx_dtype(std::uint8_t code) {
  switch (code) {
    case 0x08:
      return DType::uint8;
    case 0x09:
      return DType::int8;
    case 0x0b:
      return DType::int16;
    case 0x0c:
      return DType::int32;
    case 0x0d:
      return DType::float32;
    case 0x0e:
      return DType::float64;
    default:
      return std::nullopt;
  }
}

std::uint32_t big_endian_u32(ByteReader& in) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | in.u8();
  return value;
}

/// Elements of `size` bytes each from big-endian to this machine's order, in place.
void from_big_endian(void* elements, std::size_t count, std::size_t size) {
  if (size == 1 || std::endian::native == std::endian::big) return;
  auto* bytes = static_cast<std::byte*>(elements);
  for (std::size_t i = 0; i < count; ++i, bytes += size) std::reverse(bytes, bytes + size);
}

}  // namespace detail

AnyTensor parse_idx(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const std::uint8_t zero0 = in.u8(), zero1 = in.u8(), type = in.u8(), rank = in.u8();
  const std::optional<DType> dtype = detail::idx_dtype(type);
  if (zero0 != 0 || zero1 != 0 || !dtype) throw_error(Status::data_loss("not an IDX file: the magic number is wrong"));
  if (rank > max_rank)
    throw_error(Status::data_loss(str_cat("the IDX file has ", rank, " dimensions, more than ", max_rank)));

  std::array<std::int64_t, max_rank> extents{};
  bool is_empty = false;
  for (std::size_t i = 0; i < rank; ++i) {
    extents[i] = detail::big_endian_u32(in);
    is_empty |= extents[i] == 0;
  }
  std::uint64_t total = is_empty ? 0 : size_of(*dtype);
  for (std::size_t i = 0; i < rank; ++i) {
    if (__builtin_mul_overflow(total, static_cast<std::uint64_t>(extents[i]), &total)) {
      throw_error(Status::data_loss("the extents of the IDX file overflow"));
    }
  }
  if (total != in.remaining()) {
    throw_error(
        Status::data_loss(str_cat("the IDX file declares ", total, " bytes of elements and holds ", in.remaining())));
  }
  AnyTensor tensor(*dtype, Shape(std::span<const std::int64_t>(extents.data(), rank)));
  const std::span<const std::byte> elements = in.bytes(in.remaining());
  if (!elements.empty()) std::memcpy(tensor.raw_data(), elements.data(), elements.size());
  detail::from_big_endian(tensor.raw_data(), static_cast<std::size_t>(tensor.num_elements()), size_of(*dtype));
  return tensor;
}

AnyTensor read_idx(FileSystem& files, const std::string& path) {
  const std::string bytes = read_maybe_gzip(files, path);
  try {
    return parse_idx(std::as_bytes(std::span(bytes.data(), bytes.size())));
  } catch (const Error& error) {
    throw_error(with_kind_of_file(error.status(), bytes).with_prefix(str_cat(path, ": ")));
  }
}

}  // namespace dflow
