#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/files/crc32.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/compression/zlib_stream.hpp>
#include <dflow/io/summary/png.hpp>

#include <algorithm>
#include <array>
#include <span>

namespace dflow {

namespace detail {

void append_big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

/// Uses the checksum of RFC 2083, appendix 15.
void append_png_chunk(std::string& out, std::string_view type, std::string_view content) {
  append_big_endian(out, static_cast<std::uint32_t>(content.size()));
  const std::size_t start = out.size();
  out.append(type);
  out.append(content);
  append_big_endian(out, crc32(std::string_view(out).substr(start)));
}

std::string stored_in_zlib(std::string_view content) {
  constexpr std::size_t block_bytes = 0xffff;
  std::uint32_t low = 1, high = 0;  // Adler-32
  for (const char byte : content) {
    low = (low + static_cast<unsigned char>(byte)) % 65521;
    high = (high + low) % 65521;
  }
  std::string out = "\x78\x01";
  do {
    const std::string_view block = content.substr(0, block_bytes);
    content.remove_prefix(block.size());
    const auto size = static_cast<unsigned>(block.size());
    out += content.empty() ? '\1' : '\0';
    for (const unsigned field : {size, ~size}) {
      out += static_cast<char>(field & 0xff);
      out += static_cast<char>(field >> 8 & 0xff);
    }
    out.append(block);
  } while (!content.empty());
  append_big_endian(out, high << 16 | low);
  return out;
}

std::string compressed_by_zlib([[maybe_unused]] std::string_view content) {
#if defined(DFLOW_HAS_ZLIB)
  const std::array pieces{std::as_bytes(std::span(content.data(), content.size()))};
  return deflated(pieces, CompressionFormat::zlib);
#else
  return stored_in_zlib(content);
#endif
}

void check_png_size(std::size_t pixels, std::int64_t height, std::int64_t width, std::int64_t channels) {
  constexpr std::int64_t max_extent = 0x7fffffff;
  if (channels < 1 || channels > 4) {
    throw_error(Status::invalid_argument(str_cat("a PNG image has 1 to 4 channels, not ", channels)));
  }
  if (height < 1 || width < 1 || height > max_extent || width > max_extent) {
    throw_error(Status::invalid_argument(str_cat("no PNG image has ", height, " by ", width, " pixels")));
  }
  const std::array<std::int64_t, 3> extents{height, width, channels};
  if (static_cast<std::uint64_t>(checked_product(extents)) != pixels) {
    throw_error(Status::invalid_argument(
        str_cat(pixels, " values are no image of ", height, " by ", width, " pixels of ", channels, " channels")));
  }
}

}  // namespace detail

std::string encode_png(std::span<const std::uint8_t> pixels, std::int64_t height, std::int64_t width,
                       std::int64_t channels) {
  using namespace std::string_view_literals;
  detail::check_png_size(pixels.size(), height, width, channels);
  constexpr char color_types[] = {0, 4, 2, 6};  // grey, grey and opacity, colours, colours and opacity
  std::string header;
  detail::append_big_endian(header, static_cast<std::uint32_t>(width));
  detail::append_big_endian(header, static_cast<std::uint32_t>(height));
  header += '\x08';  // bits
  header += color_types[channels - 1];
  header.append(3, '\0');  // the only compression, filters by row, no interlacing

  const auto row_bytes = static_cast<std::size_t>(width * channels);
  std::string rows;
  rows.reserve(pixels.size() + static_cast<std::size_t>(height));
  for (std::size_t at = 0; at < pixels.size(); at += row_bytes) {
    rows += '\0';  // no filter
    rows.append(reinterpret_cast<const char*>(pixels.data()) + at, row_bytes);
  }
  // A chunk has at most 2^31 - 1 bytes; the content may be in several.
  constexpr std::size_t chunk_bytes = std::size_t{1} << 30;
  const std::string content = detail::compressed_by_zlib(rows);
  std::string png = "\x89PNG\r\n\x1a\n";
  detail::append_png_chunk(png, "IHDR", header);
  for (std::size_t at = 0; at < content.size(); at += chunk_bytes) {
    detail::append_png_chunk(png, "IDAT", std::string_view(content).substr(at, chunk_bytes));
  }
  detail::append_png_chunk(png, "IEND", "");
  return png;
}

}  // namespace dflow
