#pragma once

#include <dflow/base/status.hpp>
#include <dflow/io/compression/gzip.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#if defined(DFLOW_HAS_ZLIB)
#include <zlib.h>
#endif

namespace dflow {

bool is_gzip(std::string_view bytes) noexcept { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

#if defined(DFLOW_HAS_ZLIB)

namespace detail {

/// A zlib stream that reads gzip members from a view.
class GzipReader {
 public:
  explicit GzipReader(std::string_view compressed) : left_(compressed) {
    constexpr int gzip_only = 16;
    if (inflateInit2(&stream_, gzip_only + MAX_WBITS) != Z_OK) throw_error(resource_exhausted("zlib has no memory"));
  }
  ~GzipReader() { inflateEnd(&stream_); }
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Unpacks into `room`, which is not empty, the next part of the content, and says how many bytes that is; nothing at
  /// the end of the last member.
  std::optional<std::size_t> read_some(std::span<char> room) {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    if (left_.empty() && stream_.avail_in == 0 && is_between_members_) return std::nullopt;
    is_between_members_ = false;
    if (stream_.avail_in == 0) {
      stream_.avail_in = static_cast<uInt>(std::min(left_.size(), most));
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(left_.data()));
      left_.remove_prefix(stream_.avail_in);
    }
    const auto wanted = static_cast<uInt>(std::min(room.size(), most));
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = wanted;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      is_between_members_ = true;
      inflateReset(&stream_);
    } else if (result == Z_BUF_ERROR ||
               (result == Z_OK && stream_.avail_in == 0 && left_.empty() && stream_.avail_out != 0)) {
      throw_error(data_loss("the gzip file is cut short"));
    } else if (result != Z_OK) {
      throw_error(
          data_loss(str_cat("the gzip file is damaged: ", stream_.msg == nullptr ? "no gzip member" : stream_.msg)));
    }
    return wanted - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  std::string_view left_;
  bool is_between_members_ = false;
};

}  // namespace detail

std::string gunzip(std::string_view compressed, std::uint64_t max_bytes) {
  // A first guess of the size, doubled whenever it is full: a file of many small members grows no more than they need.
  constexpr std::uint64_t least = 1 << 12, most = 1 << 18, usual_ratio = 4;
  const std::uint64_t guess = std::clamp<std::uint64_t>(usual_ratio * compressed.size(), least, most);
  std::string content(static_cast<std::size_t>(std::min(guess, std::max<std::uint64_t>(max_bytes, 1))), '\0');
  std::size_t size = 0;
  detail::GzipReader reader(compressed);
  while (const auto more = reader.read_some(std::span(content).subspan(size))) {
    size += *more;
    if (size > max_bytes)
      throw_error(resource_exhausted(str_cat("the unpacked content exceeds ", max_bytes, " bytes")));
    if (size == content.size()) {
      content.resize(size + static_cast<std::size_t>(std::clamp<std::uint64_t>(max_bytes - size, 1, size)));
    }
  }
  content.resize(size);
  return content;
}

#else

std::string gunzip(std::string_view, std::uint64_t) {
  throw_error(unimplemented("this library was built without zlib and cannot read gzip files"));
}

#endif

std::string read_maybe_gzip(FileSystem& files, const std::string& path, std::uint64_t max_bytes) {
  std::string bytes = files.read_file(path, max_bytes);
  if (!is_gzip(bytes)) return bytes;
  try {
    return gunzip(bytes, max_bytes);
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat(path, ": ")));
  }
}

}  // namespace dflow
