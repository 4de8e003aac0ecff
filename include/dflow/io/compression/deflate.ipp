#pragma once

#include <dflow/base/status.hpp>
#include <dflow/io/compression/deflate.hpp>

#include <algorithm>
#include <array>
#include <limits>

#if defined(DFLOW_HAS_ZLIB)
#include <zlib.h>
#endif

namespace dflow {

#if defined(DFLOW_HAS_ZLIB)

struct Inflater::Stream {
  z_stream zlib{};
  bool is_at_end = false;
};

Inflater::Inflater() : stream_(std::make_unique<Stream>()) {
  constexpr int raw = -MAX_WBITS;
  if (inflateInit2(&stream_->zlib, raw) != Z_OK) throw_error(resource_exhausted("zlib has no memory"));
}

Inflater::~Inflater() { inflateEnd(&stream_->zlib); }

/// One call of zlib's; false if the stream has ended.
bool Inflater::step(std::span<std::byte> into, std::size_t& filled, FunctionRef<std::span<const std::byte>()> more) {
  if (stream_->is_at_end) return false;
  z_stream& zlib = stream_->zlib;
  bool is_cut_short = false;
  if (zlib.avail_in == 0) {
    const std::span<const std::byte> next = more();
    zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(next.data()));
    zlib.avail_in = static_cast<uInt>(next.size());
    is_cut_short = next.empty();  // unless what zlib has taken gives more, or was all
  }
  const auto room = static_cast<uInt>(std::min<std::size_t>(into.size() - filled, std::numeric_limits<uInt>::max()));
  zlib.next_out = reinterpret_cast<Bytef*>(into.data() + filled);
  zlib.avail_out = room;
  const int result = inflate(&zlib, Z_NO_FLUSH);
  filled += room - zlib.avail_out;
  stream_->is_at_end = result == Z_STREAM_END;
  if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
    throw_error(data_loss(str_cat("the deflated bytes are damaged: ", zlib.msg == nullptr ? "no stream" : zlib.msg)));
  }
  if (is_cut_short && !stream_->is_at_end && zlib.avail_out == room) {
    throw_error(data_loss("the deflated bytes are cut short"));
  }
  return true;
}

void Inflater::read(std::span<std::byte> into, FunctionRef<std::span<const std::byte>()> more) {
  for (std::size_t filled = 0; filled < into.size();) {
    if (!step(into, filled, more)) throw_error(data_loss("the deflated bytes hold less than they should"));
  }
}

void Inflater::expect_end(FunctionRef<std::span<const std::byte>()> more) {
  std::array<std::byte, 1> probe{};
  std::size_t filled = 0;
  while (filled == 0 && step(probe, filled, more)) {
  }
  if (filled != 0) throw_error(data_loss("the deflated bytes hold more than they should"));
  if (stream_->zlib.avail_in != 0 || !more().empty()) throw_error(data_loss("bytes follow the deflated ones"));
}

std::string deflate(std::span<const std::span<const std::byte>> pieces) {
  struct Closer {
    z_stream zlib{};
    ~Closer() { deflateEnd(&zlib); }
  } stream;
  z_stream& zlib = stream.zlib;
  constexpr int raw = -MAX_WBITS, memory_level = 8;
  if (deflateInit2(&zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, raw, memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw_error(resource_exhausted("zlib has no memory"));
  }
  std::string packed;
  std::array<char, std::size_t{1} << 16> room{};
  const auto feed = [&](std::span<const std::byte> bytes, int flush) {
    zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    zlib.avail_in = static_cast<uInt>(bytes.size());
    do {
      zlib.next_out = reinterpret_cast<Bytef*>(room.data());
      zlib.avail_out = static_cast<uInt>(room.size());
      ::deflate(&zlib, flush);
      packed.append(room.data(), room.size() - zlib.avail_out);
    } while (zlib.avail_out == 0);
  };
  constexpr std::size_t most = std::size_t{1} << 30;
  for (std::span<const std::byte> piece : pieces) {
    for (; !piece.empty(); piece = piece.subspan(std::min(piece.size(), most))) {
      feed(piece.first(std::min(piece.size(), most)), Z_NO_FLUSH);
    }
  }
  feed({}, Z_FINISH);
  return packed;
}

#else

struct Inflater::Stream {};

Inflater::Inflater() {
  throw_error(unimplemented("this library was built without zlib and cannot unpack deflated bytes"));
}
Inflater::~Inflater() = default;
bool Inflater::step(std::span<std::byte>, std::size_t&, FunctionRef<std::span<const std::byte>()>) { return false; }
void Inflater::read(std::span<std::byte>, FunctionRef<std::span<const std::byte>()>) {}
void Inflater::expect_end(FunctionRef<std::span<const std::byte>()>) {}

std::string deflate(std::span<const std::span<const std::byte>>) {
  throw_error(unimplemented("this library was built without zlib and cannot deflate bytes"));
}

#endif

}  // namespace dflow
