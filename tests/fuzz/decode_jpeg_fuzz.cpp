// Decodes bytes as a JPEG in several ways, and encodes what is decoded. Memory stays within the limit that is asked
// for.
#include <dflow/base/status.hpp>
#include <dflow/image/image.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

constexpr std::int64_t limit = 1 << 20;

void require(bool condition) {
  if (!condition) std::abort();
}

void decode(std::string_view contents, const dflow::DecodeJpeg::Attrs& attrs) {
  dflow::Tensor<std::uint8_t> pixels;
  try {
    pixels = dflow::image::decode_jpeg(contents, attrs);
  } catch (const dflow::Error& error) {
    return require(error.code() == dflow::Code::invalid_argument);
  }
  require(pixels.rank() == 3 && pixels.num_elements() > 0 && pixels.num_elements() <= limit);
  require(attrs.channels == 0 || pixels.dim(2) == attrs.channels);
  if (pixels.num_elements() > 20'000) return;
  const auto again = dflow::image::decode_jpeg(dflow::image::encode_jpeg(pixels, {.quality = 90}));
  require(again.shape() == pixels.shape());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view contents(reinterpret_cast<const char*>(data), size);
  decode(contents, {.max_bytes = limit});
  decode(contents, {.channels = 3, .fancy_upscaling = false, .try_recover_truncated = true, .max_bytes = limit});
  decode(
      contents,
      {.channels = 1, .ratio = 8, .acceptable_fraction = 0.1f, .dct_method = "INTEGER_ACCURATE", .max_bytes = limit});
  return 0;
}
