#pragma once

#include <dflow/kernels/cpu/image/codec/png_codec.hpp>

#include <dflow/base/str_cat.hpp>

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <utility>

#include <png.h>

/// libpng reports an error by a jump out of its functions, as libjpeg does. The rules are those of jpeg_codec.ipp.

namespace dflow::image::detail {

struct PngErrors {
  char message[160] = "";

  [[noreturn]] static void on_error(png_structp png, png_const_charp text) {
    auto& errors = *static_cast<PngErrors*>(png_get_error_ptr(png));
    std::snprintf(errors.message, sizeof errors.message, "%s", text);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
};

/// A decoder of one file.
struct PngDecoder {
  PngErrors errors;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view rest;
  png_uint_32 height = 0, width = 0;
  int channels = 0;
  int passes = 1;
  /// Samples of 8 bits that become 16.
  bool is_widened = false;

  PngDecoder()
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors, PngErrors::on_error, PngErrors::on_warning)) {}
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }

  static void read(png_structp png, png_bytep to, std::size_t count) {
    auto& decoder = *static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (count > decoder.rest.size()) png_error(png, "it ends early");
    std::memcpy(to, decoder.rest.data(), count);
    decoder.rest.remove_prefix(count);
  }
};

/// Reads what stands before the pixels. False if there is an error.
inline bool read_png_header(PngDecoder& decoder, int channels) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) png_error(decoder.png, "there is no memory");
  png_set_chunk_malloc_max(decoder.png, 8'000'000);
#ifdef PNG_HANDLE_AS_UNKNOWN_SUPPORTED
  // Texts and palettes to choose from may be many, and large when they are unpacked.
  static constexpr png_byte passed_over[] = "tEXt\0zTXt\0iTXt\0sPLT";
  png_set_keep_unknown_chunks(decoder.png, PNG_HANDLE_CHUNK_NEVER, passed_over, sizeof passed_over / 5);
#endif
  png_set_read_fn(decoder.png, &decoder, PngDecoder::read);
  png_read_info(decoder.png, decoder.info);
  decoder.width = png_get_image_width(decoder.png, decoder.info);
  decoder.height = png_get_image_height(decoder.png, decoder.info);
  decoder.channels = channels;
  if (channels == 0) {
    const bool is_palette = png_get_color_type(decoder.png, decoder.info) == PNG_COLOR_TYPE_PALETTE;
    const bool is_clear = png_get_valid(decoder.png, decoder.info, PNG_INFO_tRNS) != 0;
    decoder.channels = is_palette ? (is_clear ? 4 : 3) : png_get_channels(decoder.png, decoder.info);
  }
  return true;
}

/// Asks libpng for the wanted samples, in the order that TensorFlow does (png_io.cc). False if there is an error.
inline bool transform_png(PngDecoder& decoder, bool is_16) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  const png_structp png = decoder.png;
  const png_infop info = decoder.info;
  const int depth = png_get_bit_depth(png, info), color = png_get_color_type(png, info);
  const bool is_clear = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
  const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0, is_gray = (color & PNG_COLOR_MASK_COLOR) == 0;
  const bool wants_alpha = decoder.channels % 2 == 0, wants_gray = decoder.channels < 3;
  if (wants_alpha && !has_alpha && is_clear) png_set_tRNS_to_alpha(png);
  if (wants_alpha && !has_alpha && !is_clear) png_set_add_alpha(png, depth == 16 ? 65535 : 255, PNG_FILLER_AFTER);
  if (!wants_alpha && (has_alpha || is_clear)) png_set_strip_alpha(png);
  if (depth == 16 && !is_16) png_set_strip_16(png);
  decoder.is_widened = depth < 16 && is_16;
  png_set_packing(png);
  decoder.passes = png_set_interlace_handling(png);
  if (is_16 && std::endian::native == std::endian::little) png_set_swap(png);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (is_gray && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (wants_gray && !is_gray) png_set_rgb_to_gray(png, 1, 0.299, 0.587);
  if (!wants_gray && is_gray) png_set_gray_to_rgb(png);
  png_read_update_info(png, info);
  const std::size_t bytes =
      std::size_t{decoder.width} * static_cast<std::size_t>(decoder.channels) * (is_16 && depth == 16 ? 2 : 1);
  if (png_get_rowbytes(png, info) != bytes) png_error(png, "its samples cannot be converted");
  return true;
}

/// Decodes the rows, `stride` bytes from one to the next. False if there is an error.
inline bool read_png_rows(PngDecoder& decoder, png_bytep pixels, std::size_t stride) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  for (int pass = 0; pass < decoder.passes; ++pass) {
    for (png_uint_32 row = 0; row < decoder.height; ++row) png_read_row(decoder.png, pixels + row * stride, nullptr);
  }
  png_read_end(decoder.png, nullptr);
  return true;
}

void decode_png_into(bool is_16, std::string_view contents, const DecodePng::Attrs& attrs, MakeImage make) {
  throw_if_error(check_attrs(attrs));
  PngDecoder decoder;
  if (decoder.png == nullptr) throw_error(Status::out_of_memory());
  decoder.rest = contents;
  const auto refuse = [&decoder] {
    throw_error(Status::invalid_argument(str_cat("a PNG cannot be decoded: ", decoder.errors.message)));
  };
  if (!read_png_header(decoder, static_cast<int>(attrs.channels))) refuse();
  // libpng has refused more than a million rows or columns.
  const std::int64_t height = decoder.height, width = decoder.width, channels = decoder.channels;
  const std::int64_t row_bytes = width * channels * (is_16 ? 2 : 1);
  if (height * row_bytes > attrs.max_bytes) {
    throw_error(Status::invalid_argument(str_cat("a PNG of ", height, " by ", width, " pixels is too large: it has ",
                                                 height * row_bytes, " bytes, and max_bytes is ", attrs.max_bytes)));
  }
  if (!transform_png(decoder, is_16)) refuse();
  void* const pixels = make(Shape{height, width, channels});
  if (!read_png_rows(decoder, static_cast<png_bytep>(pixels), static_cast<std::size_t>(row_bytes))) refuse();
  if (!decoder.is_widened) return;
  for (std::int64_t row = 0; row < height; ++row) {
    // In place, so from the last sample to the first.
    auto* const wide = static_cast<std::uint16_t*>(pixels) + row * width * channels;
    const auto* const narrow = reinterpret_cast<const std::uint8_t*>(wide);
    for (std::int64_t i = width * channels; i-- > 0;) wide[i] = static_cast<std::uint16_t>(narrow[i] * 257);
  }
}

/// An encoder of one image.
struct PngEncoder {
  PngErrors errors;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string bytes;

  PngEncoder()
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors, PngErrors::on_error, PngErrors::on_warning)) {}
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;
  ~PngEncoder() { png_destroy_write_struct(&png, &info); }

  /// False if there is no memory.
  bool append(png_const_bytep from, std::size_t count) noexcept {
    try {
      bytes.append(reinterpret_cast<const char*>(from), count);
      return true;
    } catch (...) {
      return false;
    }
  }
  static void write(png_structp png, png_bytep from, std::size_t count) {
    if (!static_cast<PngEncoder*>(png_get_io_ptr(png))->append(from, count)) png_error(png, "there is no memory");
  }
};

/// Encodes the image into `bytes`. False if there is an error.
inline bool write_png(PngEncoder& encoder, bool is_16, png_const_bytep pixels, const Shape& shape, int compression) {
  if (setjmp(png_jmpbuf(encoder.png)) != 0) return false;
  static constexpr int colors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                   PNG_COLOR_TYPE_RGB_ALPHA};
  encoder.info = png_create_info_struct(encoder.png);
  if (encoder.info == nullptr) png_error(encoder.png, "there is no memory");
  png_set_write_fn(encoder.png, &encoder, PngEncoder::write, [](png_structp) {});
  png_set_user_limits(encoder.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_compression_level(encoder.png, compression);
  png_set_compression_mem_level(encoder.png, 9);
  png_set_IHDR(encoder.png, encoder.info, static_cast<png_uint_32>(shape[1]), static_cast<png_uint_32>(shape[0]),
               is_16 ? 16 : 8, colors[shape[2] - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(encoder.png, encoder.info);
  if (is_16 && std::endian::native == std::endian::little) png_set_swap(encoder.png);
  const auto row_bytes = static_cast<std::size_t>(shape[1] * shape[2] * (is_16 ? 2 : 1));
  for (std::int64_t row = 0; row < shape[0]; ++row)
    png_write_row(encoder.png, pixels + static_cast<std::size_t>(row) * row_bytes);
  png_write_end(encoder.png, nullptr);
  return true;
}

std::string encode_png_of(bool is_16, const void* pixels, const Shape& shape, const EncodePng::Attrs& attrs) {
  throw_if_error(check_attrs(attrs));
  if (shape.rank() != 3) {
    throw_error(
        Status::invalid_argument(str_cat("an image has the shape [height, width, channels], not ", shape.to_string())));
  }
  throw_if_error(check_png_channels(shape[2]));
  if (shape[0] < 1 || shape[1] < 1 || shape[0] > PNG_UINT_31_MAX || shape[1] > PNG_UINT_31_MAX) {
    throw_error(
        Status::invalid_argument(str_cat("an image of shape ", shape.to_string(), " cannot be a PNG: it has from 1 to ",
                                         PNG_UINT_31_MAX, " rows and columns")));
  }
  PngEncoder encoder;
  if (encoder.png == nullptr) throw_error(Status::out_of_memory());
  if (!write_png(encoder, is_16, static_cast<png_const_bytep>(pixels), shape, static_cast<int>(attrs.compression))) {
    throw_error(Status::invalid_argument(str_cat("an image cannot be encoded as a PNG: ", encoder.errors.message)));
  }
  return std::move(encoder.bytes);
}

}  // namespace dflow::image::detail
