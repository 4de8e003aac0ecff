// Decodes bytes as a PNG to all channels and both depths. What is decoded must be the same after it is encoded and
// decoded again. Memory stays within the limit that is asked for. Sums of chunks are wrong after most changes, so they
// are put right.
#include <dflow/base/status.hpp>
#include <dflow/image/image.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

constexpr std::int64_t limit = 1 << 20;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class T>
void decode(std::string_view contents, std::int64_t channels) {
  dflow::Tensor<T> pixels;
  try {
    pixels = dflow::image::decode_png<T>(contents, {.channels = channels, .max_bytes = limit});
  } catch (const dflow::Error& error) {
    return require(error.code() == dflow::Code::invalid_argument);
  }
  require(pixels.rank() == 3 && pixels.num_elements() > 0 && pixels.bytes() <= limit);
  require(channels == 0 || pixels.dim(2) == channels);
  if (pixels.bytes() > 20'000) return;
  const std::string encoded = dflow::image::encode_png(pixels, {.compression = 1});
  require(bitwise_equal(dflow::image::decode_png<T>(encoded), pixels));
  require(bitwise_equal(dflow::image::decode_image<T>(encoded), pixels));
}

std::uint32_t crc_of(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

/// The file with the right sum behind each chunk.
std::string with_sums(std::string_view contents) {
  std::string file(contents);
  for (std::size_t at = 8; at + 12 <= file.size();) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(file[at + i]);
    if (length > file.size() - at - 12) break;
    const std::uint32_t crc = crc_of(std::string_view(file).substr(at + 4, length + 4));
    for (std::size_t i = 0; i < 4; ++i) file[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += length + 12;
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view contents(reinterpret_cast<const char*>(data), size);
  decode<std::uint8_t>(contents, 0);
  const std::string file = with_sums(contents);
  for (std::int64_t channels = 0; channels <= 4; ++channels) {
    decode<std::uint8_t>(file, channels);
    decode<std::uint16_t>(file, channels);
  }
  return 0;
}
