#pragma once

#include <dflow/base/status.hpp>
#include <dflow/io/compression/zlib_stream.hpp>

#include <algorithm>
#include <limits>
#include <vector>

#if defined(DFLOW_HAS_ZLIB)
#include <zlib.h>
#endif

namespace dflow {

#if defined(DFLOW_HAS_ZLIB)

namespace detail {

inline constexpr std::size_t zlib_piece_bytes = std::numeric_limits<uInt>::max();

int zlib_window_bits(CompressionFormat format) {
  constexpr int gzip_only = 16;
  switch (format) {
    case CompressionFormat::raw:
      return -MAX_WBITS;
    case CompressionFormat::zlib:
      return MAX_WBITS;
    case CompressionFormat::gzip:
      break;
  }
  return MAX_WBITS + gzip_only;
}

[[noreturn]] void fail_for_zlib_memory() { throw_error(Status::resource_exhausted("zlib has no memory")); }

}  // namespace detail

struct Inflater::Stream {
  explicit Stream(CompressionFormat format) {
    if (inflateInit2(&zlib, detail::zlib_window_bits(format)) != Z_OK) detail::fail_for_zlib_memory();
  }
  ~Stream() { inflateEnd(&zlib); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  z_stream zlib{};
};

Inflater::Inflater(CompressionFormat format) : stream_(std::make_unique<Stream>(format)) {}

Inflater::Step Inflater::step(std::span<const std::byte> packed, std::span<std::byte> into) {
  z_stream& zlib = stream_->zlib;
  const auto given = static_cast<uInt>(std::min(packed.size(), detail::zlib_piece_bytes));
  const auto room = static_cast<uInt>(std::min(into.size(), detail::zlib_piece_bytes));
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  zlib.avail_in = given;
  zlib.next_out = reinterpret_cast<Bytef*>(into.data());
  zlib.avail_out = room;
  const int result = ::inflate(&zlib, Z_NO_FLUSH);
  if (result == Z_MEM_ERROR) detail::fail_for_zlib_memory();
  Step step;
  step.taken = given - zlib.avail_in;
  step.made = room - zlib.avail_out;
  step.is_end = result == Z_STREAM_END;
  if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
    step.damage = zlib.msg != nullptr ? zlib.msg : "it is of another format";
  }
  return step;
}

void Inflater::reset() { inflateReset(&stream_->zlib); }

struct Deflater::Stream {
  Stream(CompressionFormat format, int level) : buffer(std::size_t{1} << 16) {
    constexpr int default_memory = 8;
    const int result =
        deflateInit2(&zlib, level, Z_DEFLATED, detail::zlib_window_bits(format), default_memory, Z_DEFAULT_STRATEGY);
    if (result == Z_STREAM_ERROR)
      throw_error(Status::invalid_argument(str_cat("zlib has no compression level ", level)));
    if (result != Z_OK) detail::fail_for_zlib_memory();
  }
  ~Stream() { deflateEnd(&zlib); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Takes all of `bytes`, as many as zlib can count.
  void run(std::span<const std::byte> bytes, int flush, Out out) {
    zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    zlib.avail_in = static_cast<uInt>(bytes.size());
    while (!is_finished) {
      zlib.next_out = reinterpret_cast<Bytef*>(buffer.data());
      zlib.avail_out = static_cast<uInt>(buffer.size());
      is_finished = ::deflate(&zlib, flush) == Z_STREAM_END;
      if (const std::size_t size = buffer.size() - zlib.avail_out; size != 0) out(std::span(buffer).first(size));
      if (zlib.avail_out != 0 && zlib.avail_in == 0) return;
    }
  }

  std::vector<std::byte> buffer;
  z_stream zlib{};
  bool is_finished = false;
};

Deflater::Deflater(CompressionFormat format, int level) : stream_(std::make_unique<Stream>(format, level)) {}

void Deflater::run(std::span<const std::byte> bytes, Flush flush, Out out) {
  if (stream_->is_finished && !bytes.empty())
    throw_error(Status::failed_precondition("the compressed stream has been finished"));
  for (; bytes.size() > detail::zlib_piece_bytes; bytes = bytes.subspan(detail::zlib_piece_bytes)) {
    stream_->run(bytes.first(detail::zlib_piece_bytes), Z_NO_FLUSH, out);
  }
  stream_->run(bytes, flush == Flush::none ? Z_NO_FLUSH : flush == Flush::sync ? Z_SYNC_FLUSH : Z_FINISH, out);
}

#else

struct Inflater::Stream {};
struct Deflater::Stream {};

Inflater::Inflater(CompressionFormat) {
  throw_error(Status::unimplemented("this library was built without zlib and cannot read compressed bytes"));
}
Inflater::Step Inflater::step(std::span<const std::byte>, std::span<std::byte>) { return {}; }
void Inflater::reset() {}

Deflater::Deflater(CompressionFormat, int) {
  throw_error(Status::unimplemented("this library was built without zlib and cannot write compressed bytes"));
}
void Deflater::run(std::span<const std::byte>, Flush, Out) {}

#endif

Inflater::~Inflater() = default;
Inflater::Inflater(Inflater&&) noexcept = default;
Inflater& Inflater::operator=(Inflater&&) noexcept = default;

Deflater::~Deflater() = default;
Deflater::Deflater(Deflater&&) noexcept = default;
Deflater& Deflater::operator=(Deflater&&) noexcept = default;

std::string deflated(std::span<const std::span<const std::byte>> pieces, CompressionFormat format) {
  std::string packed;
  const auto append = [&](std::span<const std::byte> bytes) {
    packed.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  Deflater deflater(format);
  for (const std::span<const std::byte> piece : pieces) deflater.run(piece, Deflater::Flush::none, append);
  deflater.run({}, Deflater::Flush::finish, append);
  return packed;
}

}  // namespace dflow
