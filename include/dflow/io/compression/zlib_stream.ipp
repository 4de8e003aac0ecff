#pragma once

#include <dflow/base/status.hpp>
#include <dflow/io/compression/zlib_stream.hpp>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#if defined(DFLOW_HAS_ZLIB)
#include <zlib.h>
#endif

namespace dflow {

#if defined(DFLOW_HAS_ZLIB)

namespace detail {

int zlib_window_bits(ZlibFormat format) {
  constexpr int gzip_only = 16;
  return format == ZlibFormat::gzip ? MAX_WBITS + gzip_only : MAX_WBITS;
}

class InflatingSource final : public ByteSource {
 public:
  InflatingSource(std::unique_ptr<ByteSource> compressed, ZlibFormat format)
      : compressed_(std::move(compressed)), format_(format), buffer_(std::size_t{1} << 16) {
    if (inflateInit2(&stream_, zlib_window_bits(format)) != Z_OK) {
      throw_error(resource_exhausted("zlib has no memory"));
    }
  }
  ~InflatingSource() override { inflateEnd(&stream_); }
  InflatingSource(const InflatingSource&) = delete;
  InflatingSource& operator=(const InflatingSource&) = delete;

  std::size_t read(std::span<std::byte> into) override {
    if (is_broken_) fail("an earlier read failed");
    is_broken_ = true;
    std::size_t done = 0;
    while (done < into.size()) {
      if (stream_.avail_in == 0 && !refill() && (is_at_end_ || is_untouched_)) break;
      if (is_at_end_) {
        if (format_ == ZlibFormat::zlib) fail("bytes follow its end");
        inflateReset(&stream_);
        is_at_end_ = false;
      }
      done += unpack(into.subspan(done));
    }
    position_ += done;
    is_broken_ = false;
    return done;
  }

  std::uint64_t position() const override { return position_; }

  void seek(std::uint64_t position) override {
    if (position < position_ || is_broken_) {
      compressed_->seek(0);
      inflateReset(&stream_);
      stream_.avail_in = 0;
      position_ = 0;
      is_at_end_ = is_broken_ = false;
      is_untouched_ = true;
    }
    std::vector<std::byte> skipped(std::min<std::uint64_t>(position - position_, std::uint64_t{1} << 16));
    while (position_ < position) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(position - position_, skipped.size()));
      if (read(std::span(skipped).first(wanted)) < wanted) return;
    }
  }

 private:
  bool refill() {
    const std::size_t got = compressed_->read(buffer_);
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(got);
    if (got != 0) is_untouched_ = false;
    return got != 0;
  }

  /// Unpacks some of the input that is there into `room`, which is not empty.
  std::size_t unpack(std::span<std::byte> room) {
    const auto wanted = static_cast<uInt>(std::min<std::size_t>(room.size(), std::numeric_limits<uInt>::max()));
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = wanted;
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      is_at_end_ = true;
    } else if (result == Z_BUF_ERROR) {
      fail("it is cut short");
    } else if (result != Z_OK) {
      fail(stream_.msg != nullptr ? stream_.msg : "it is of another format");
    }
    return wanted - stream_.avail_out;
  }

  [[noreturn]] void fail(const char* what) const {
    throw_error(
        data_loss(str_cat("the ", format_ == ZlibFormat::gzip ? "gzip" : "zlib", " stream is damaged before offset ",
                          compressed_->position() - stream_.avail_in, ": ", what)));
  }

  std::unique_ptr<ByteSource> compressed_;
  ZlibFormat format_;
  std::vector<std::byte> buffer_;
  z_stream stream_{};
  std::uint64_t position_ = 0;
  bool is_at_end_ = false;    ///< of a stream: another member may follow
  bool is_untouched_ = true;  ///< nothing has been unpacked yet
  bool is_broken_ = false;    ///< a read ended in an error
};

}  // namespace detail

std::unique_ptr<ByteSource> inflating_source(std::unique_ptr<ByteSource> compressed, ZlibFormat format) {
  return std::make_unique<detail::InflatingSource>(std::move(compressed), format);
}

struct DeflatingFile::Stream {
  explicit Stream(std::unique_ptr<WritableFile> file) : compressed(std::move(file)), buffer(std::size_t{1} << 16) {}
  ~Stream() { deflateEnd(&stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Takes the input that is set and writes what comes of it.
  void run(int flush) {
    while (true) {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      const int result = deflate(&stream, flush);
      if (const std::size_t size = buffer.size() - stream.avail_out; size != 0) {
        compressed->append(std::span(buffer).first(size));
      }
      if (result == Z_STREAM_END || (stream.avail_out != 0 && stream.avail_in == 0)) return;
    }
  }

  std::unique_ptr<WritableFile> compressed;
  std::vector<std::byte> buffer;
  z_stream stream{};
};

DeflatingFile::DeflatingFile(std::unique_ptr<WritableFile> compressed, ZlibFormat format, int level)
    : stream_(std::make_unique<Stream>(std::move(compressed))) {
  constexpr int default_memory = 8;
  const int result = deflateInit2(&stream_->stream, level, Z_DEFLATED, detail::zlib_window_bits(format), default_memory,
                                  Z_DEFAULT_STRATEGY);
  if (result == Z_STREAM_ERROR) throw_error(invalid_argument(str_cat("zlib has no compression level ", level)));
  if (result != Z_OK) throw_error(resource_exhausted("zlib has no memory"));
}

void DeflatingFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    stream_->stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    stream_->stream.avail_in = static_cast<uInt>(size);
    stream_->run(Z_NO_FLUSH);
    bytes = bytes.subspan(size);
  }
}

void DeflatingFile::flush() { stream_->run(Z_SYNC_FLUSH); }
void DeflatingFile::finish() { stream_->run(Z_FINISH); }
void DeflatingFile::sync() {
  flush();
  stream_->compressed->sync();
}

#else

struct DeflatingFile::Stream {};

std::unique_ptr<ByteSource> inflating_source(std::unique_ptr<ByteSource>, ZlibFormat) {
  throw_error(unimplemented("this library was built without zlib and cannot read compressed files"));
}

DeflatingFile::DeflatingFile(std::unique_ptr<WritableFile>, ZlibFormat, int) {
  throw_error(unimplemented("this library was built without zlib and cannot write compressed files"));
}

void DeflatingFile::append(std::span<const std::byte>) {}
void DeflatingFile::flush() {}
void DeflatingFile::finish() {}
void DeflatingFile::sync() {}

#endif

DeflatingFile::~DeflatingFile() = default;

}  // namespace dflow
