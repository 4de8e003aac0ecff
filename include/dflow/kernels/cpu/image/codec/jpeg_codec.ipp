#pragma once

#include <dflow/kernels/cpu/image/codec/jpeg_codec.hpp>

#include <dflow/base/str_cat.hpp>

#include <algorithm>
#include <climits>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

#include <jpeglib.h>

/// libjpeg reports an error by a jump out of its functions. The functions below that call setjmp have no object with a
/// destructor, and neither have the functions that libjpeg calls. Decoder and encoder belong to the callers of these
/// functions, which no jump leaves.

namespace dflow::image::detail {

/// What libjpeg's functions need of both a decoder and an encoder: where an error goes.
struct JpegErrors {
  jpeg_error_mgr manager{};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";

  [[noreturn]] void leave(const char* text) {
    std::snprintf(message, sizeof message, "%s", text);
    std::longjmp(jump, 1);
  }

  static JpegErrors& of(j_common_ptr info) { return *static_cast<JpegErrors*>(info->client_data); }
  [[noreturn]] static void on_error(j_common_ptr info) {
    JpegErrors& errors = of(info);
    info->err->format_message(info, errors.message);
    std::longjmp(errors.jump, 1);
  }
  /// Warnings are counted and not printed.
  static void on_message(j_common_ptr info, int level) {
    if (level < 0) ++info->err->num_warnings;
  }
  static void print_nothing(j_common_ptr) {}

  /// Makes an object of libjpeg report its errors here.
  template <class Info>
  void attach(Info& info) {
    info.err = jpeg_std_error(&manager);
    manager.error_exit = on_error;
    manager.emit_message = on_message;
    manager.output_message = print_nothing;
    info.client_data = this;
  }
};

/// A decoder of one file.
struct JpegDecoder {
  jpeg_decompress_struct info{};
  JpegErrors errors;
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  const JOCTET* begin = nullptr;
  bool recovers = false;
  int repeats = 0;  ///< of the bytes of the last block
  JDIMENSION rows_read = 0;

  JpegDecoder() = default;
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() { jpeg_destroy_decompress(&info); }

  static JpegDecoder& of(j_decompress_ptr info) {
    return *reinterpret_cast<JpegDecoder*>(reinterpret_cast<char*>(info) - offsetof(JpegDecoder, info));
  }
};

inline constexpr JOCTET jpeg_end[2] = {0xff, JPEG_EOI};

/// More scans than any encoder writes: each costs a pass over the image, and few bytes of the file.
inline constexpr int max_jpeg_scans = 500;

/// The last block of a cut file begins again at its first byte until there is none left: some ten thousand times at
/// most.
inline constexpr int max_jpeg_repeats = 1 << 17;

/// The source has all bytes from the start, so this is called at their end. The answers are TensorFlow's
/// (jpeg_handle.cc). If a file is to be recovered, the block in which it ends goes on with its first bytes, and then
/// comes one mark of the end. Else the rows end with that block.
inline boolean jpeg_fill(j_decompress_ptr info) {
  JpegDecoder& decoder = JpegDecoder::of(info);
  jpeg_source_mgr& source = decoder.source;
  if (source.bytes_in_buffer > 0) {
    // In the middle of a marker that would never end.
    if (++decoder.repeats > max_jpeg_repeats) decoder.errors.leave("it ends early");
    return decoder.recovers ? TRUE : FALSE;
  }
  if (source.next_input_byte == decoder.begin) decoder.errors.leave("it is empty");
  if (source.next_input_byte == jpeg_end || !decoder.recovers) decoder.errors.leave("it ends early");
  ++info->err->num_warnings;
  source.next_input_byte = jpeg_end;
  source.bytes_in_buffer = sizeof jpeg_end;
  return TRUE;
}

inline void jpeg_skip(j_decompress_ptr info, long count) {
  jpeg_source_mgr& source = *info->src;
  if (count <= 0) return;
  const std::size_t skipped = std::min(static_cast<std::size_t>(count), source.bytes_in_buffer);
  // As TensorFlow's, the place stays where the rest of the file is too short.
  if (skipped == static_cast<std::size_t>(count)) source.next_input_byte += skipped;
  source.bytes_in_buffer -= skipped;
}

inline void limit_jpeg_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > max_jpeg_scans) {
    JpegErrors::of(info).leave("it has too many scans");
  }
}

/// Reads the header and sets the image's extents. False if there is an error.
inline bool read_jpeg_header(JpegDecoder& decoder, std::string_view contents, const DecodeJpeg::Attrs& attrs) {
  decoder.errors.attach(decoder.info);
  if (setjmp(decoder.errors.jump) != 0) return false;
  jpeg_decompress_struct& info = decoder.info;
  jpeg_create_decompress(&info);
  // Of whole images, which progressive files need; it has no file to put more in.
  const std::int64_t budget = std::min(attrs.max_bytes, std::int64_t{LONG_MAX} / 8) * 4 + (1 << 20);
  info.mem->max_memory_to_use = static_cast<long>(budget);
  decoder.recovers = attrs.try_recover_truncated;
  decoder.begin = reinterpret_cast<const JOCTET*>(contents.data());
  decoder.source.next_input_byte = decoder.begin;
  decoder.source.bytes_in_buffer = contents.size();
  decoder.source.init_source = [](j_decompress_ptr) {};
  decoder.source.fill_input_buffer = jpeg_fill;
  decoder.source.skip_input_data = jpeg_skip;
  decoder.source.resync_to_restart = jpeg_resync_to_restart;
  decoder.source.term_source = [](j_decompress_ptr) {};
  info.src = &decoder.source;
  decoder.progress.progress_monitor = limit_jpeg_scans;
  info.progress = &decoder.progress;

  if (jpeg_read_header(&info, TRUE) != JPEG_HEADER_OK) decoder.errors.leave("its header ends early");
  const bool is_cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  const int channels = attrs.channels == 0 ? std::min(info.num_components, 3) : static_cast<int>(attrs.channels);
  if (channels == 2) decoder.errors.leave("it has 2 channels");
  info.out_color_space = channels == 1 ? JCS_GRAYSCALE : is_cmyk ? JCS_CMYK : JCS_RGB;
  info.do_fancy_upsampling = attrs.fancy_upscaling ? TRUE : FALSE;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(attrs.ratio);
  info.dct_method = attrs.dct_method == "INTEGER_ACCURATE" ? JDCT_ISLOW : JDCT_IFAST;
  jpeg_calc_output_dimensions(&info);
  return true;
}

/// Inks to light, as TensorFlow does it. Files of Adobe have the inks inverted.
inline void rgb_of_cmyk(const JSAMPLE* cmyk, std::size_t width, bool is_inverted, std::uint8_t* rgb) {
  for (; width > 0; --width, cmyk += 4, rgb += 3) {
    const int k = is_inverted ? cmyk[3] : 255 - cmyk[3];
    for (int i = 0; i < 3; ++i) {
      const int ink = is_inverted ? cmyk[i] : 255 - cmyk[i];
      rgb[i] = static_cast<std::uint8_t>(k * ink / 255);
    }
  }
}

/// Decodes the rows, `rows_read` of them if the file is cut. False if there is an error.
inline bool read_jpeg_rows(JpegDecoder& decoder, std::uint8_t* pixels, std::size_t row_bytes) {
  if (setjmp(decoder.errors.jump) != 0) return false;
  jpeg_decompress_struct& info = decoder.info;
  if (jpeg_start_decompress(&info) == FALSE) decoder.errors.leave("it ends early");
  JSAMPLE* cmyk = nullptr;
  if (info.out_color_space == JCS_CMYK) {
    cmyk = static_cast<JSAMPLE*>(
        info.mem->alloc_large(reinterpret_cast<j_common_ptr>(&info), JPOOL_IMAGE, std::size_t{4} * info.output_width));
  }
  while (info.output_scanline < info.output_height) {
    std::uint8_t* const row = pixels + info.output_scanline * row_bytes;
    JSAMPROW target = cmyk == nullptr ? row : cmyk;
    if (jpeg_read_scanlines(&info, &target, 1) == 0) break;
    if (cmyk != nullptr) rgb_of_cmyk(cmyk, info.output_width, info.saw_Adobe_marker != FALSE, row);
  }
  decoder.rows_read = info.output_scanline;
  if (decoder.rows_read == info.output_height) static_cast<void>(jpeg_finish_decompress(&info));
  return true;
}

[[noreturn]] inline void refuse_jpeg(const JpegDecoder& decoder) {
  throw_error(Status::invalid_argument(str_cat("a JPEG cannot be decoded: ", decoder.errors.message)));
}

void decode_jpeg_into(std::string_view contents, const DecodeJpeg::Attrs& attrs, MakeImage make) {
  throw_if_error(check_attrs(attrs));
  JpegDecoder decoder;
  if (!read_jpeg_header(decoder, contents, attrs)) refuse_jpeg(decoder);
  const std::int64_t height = decoder.info.output_height, width = decoder.info.output_width;
  const std::int64_t channels = decoder.info.out_color_space == JCS_GRAYSCALE ? 1 : 3;
  if (height * width * channels > attrs.max_bytes) {
    throw_error(
        Status::invalid_argument(str_cat("a JPEG of ", height, " by ", width, " pixels is too large: it has ",
                                         height * width * channels, " bytes, and max_bytes is ", attrs.max_bytes)));
  }
  auto* const pixels = static_cast<std::uint8_t*>(make(Shape{height, width, channels}));
  const auto row_bytes = static_cast<std::size_t>(width * channels);
  if (!read_jpeg_rows(decoder, pixels, row_bytes)) refuse_jpeg(decoder);
  const std::int64_t rows = decoder.rows_read;
  if (rows == height) return;
  if (attrs.try_recover_truncated && rows > 0) {
    for (std::int64_t row = rows; row < height; ++row) {
      std::memcpy(pixels + static_cast<std::size_t>(row) * row_bytes,
                  pixels + static_cast<std::size_t>(rows - 1) * row_bytes, row_bytes);
    }
    return;
  }
  const float fraction = static_cast<float>(rows) / static_cast<float>(height);
  if (!attrs.try_recover_truncated && !(fraction >= std::min(1.0f, attrs.acceptable_fraction))) {
    throw_error(Status::invalid_argument(str_cat("a JPEG is cut: it has ", rows, " of ", height, " rows")));
  }
  std::memset(pixels + static_cast<std::size_t>(rows) * row_bytes, 0,
              static_cast<std::size_t>(height - rows) * row_bytes);
}

/// An encoder of one image.
struct JpegEncoder {
  jpeg_compress_struct info{};
  JpegErrors errors;
  jpeg_destination_mgr destination{};
  JOCTET buffer[1 << 14];
  std::string bytes;

  JpegEncoder() = default;
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;
  ~JpegEncoder() { jpeg_destroy_compress(&info); }

  static JpegEncoder& of(j_compress_ptr info) {
    return *reinterpret_cast<JpegEncoder*>(reinterpret_cast<char*>(info) - offsetof(JpegEncoder, info));
  }
  void start_buffer() {
    destination.next_output_byte = buffer;
    destination.free_in_buffer = sizeof buffer;
  }
  /// False if there is no memory.
  bool append(std::size_t count) noexcept {
    try {
      bytes.append(reinterpret_cast<const char*>(buffer), count);
      return true;
    } catch (...) {
      return false;
    }
  }
  void flush(std::size_t count) {
    if (!append(count)) errors.leave("there is no memory");
    start_buffer();
  }
};

/// Encodes the image into `bytes`. False if there is an error.
inline bool write_jpeg(JpegEncoder& encoder, const std::uint8_t* pixels, const Shape& shape,
                       const EncodeJpeg::Attrs& attrs, std::string_view xmp) {
  encoder.errors.attach(encoder.info);
  if (setjmp(encoder.errors.jump) != 0) return false;
  jpeg_compress_struct& info = encoder.info;
  jpeg_create_compress(&info);
  encoder.destination.init_destination = [](j_compress_ptr self) { JpegEncoder::of(self).start_buffer(); };
  encoder.destination.empty_output_buffer = [](j_compress_ptr self) -> boolean {
    JpegEncoder::of(self).flush(sizeof JpegEncoder::buffer);
    return TRUE;
  };
  encoder.destination.term_destination = [](j_compress_ptr self) {
    JpegEncoder& last = JpegEncoder::of(self);
    last.flush(sizeof JpegEncoder::buffer - last.destination.free_in_buffer);
  };
  info.dest = &encoder.destination;
  info.image_height = static_cast<JDIMENSION>(shape[0]);
  info.image_width = static_cast<JDIMENSION>(shape[1]);
  info.input_components = static_cast<int>(shape[2]);
  info.in_color_space = shape[2] == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  if (attrs.optimize_size) info.optimize_coding = TRUE;
  info.density_unit = attrs.density_unit == "in" ? 1 : 2;
  info.X_density = static_cast<UINT16>(attrs.x_density);
  info.Y_density = static_cast<UINT16>(attrs.y_density);
  jpeg_set_quality(&info, static_cast<int>(attrs.quality), TRUE);
  if (attrs.progressive) jpeg_simple_progression(&info);
  if (!attrs.chroma_downsampling) {
    for (int i = 0; i < info.num_components; ++i) info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
  }
  jpeg_start_compress(&info, TRUE);
  if (!xmp.empty()) {
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(xmp.data()),
                      static_cast<unsigned>(xmp.size()));
  }
  const std::size_t row_bytes = static_cast<std::size_t>(shape[1]) * static_cast<std::size_t>(shape[2]);
  while (info.next_scanline < info.image_height) {
    // libjpeg does not write into the rows that it encodes.
    auto* row = const_cast<JSAMPLE*>(pixels + info.next_scanline * row_bytes);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

std::string encode_jpeg_of(const std::uint8_t* pixels, const Shape& shape, const EncodeJpeg::Attrs& attrs) {
  throw_if_error(check_attrs(attrs));
  if (shape.rank() != 3) {
    throw_error(
        Status::invalid_argument(str_cat("an image has the shape [height, width, channels], not ", shape.to_string())));
  }
  throw_if_error(check_channels(attrs, shape[2]));
  if (shape[0] < 1 || shape[1] < 1 || shape[0] > JPEG_MAX_DIMENSION || shape[1] > JPEG_MAX_DIMENSION) {
    throw_error(Status::invalid_argument(str_cat("an image of shape ", shape.to_string(),
                                                 " cannot be a JPEG: it has from 1 to ", JPEG_MAX_DIMENSION,
                                                 " rows and columns")));
  }
  std::string xmp;
  if (!attrs.xmp_metadata.empty()) {
    // The name and its end are a part of the marker (XMP specification, part 3, section 1.1.3).
    xmp = std::string("http://ns.adobe.com/xap/1.0/") + '\0' + attrs.xmp_metadata;
    if (xmp.size() > 65533) {
      throw_error(
          Status::invalid_argument(str_cat("xmp_metadata has ", attrs.xmp_metadata.size(), " bytes: it may have ",
                                           65533 - (xmp.size() - attrs.xmp_metadata.size()))));
    }
  }
  JpegEncoder encoder;
  if (!write_jpeg(encoder, pixels, shape, attrs, xmp)) {
    throw_error(Status::invalid_argument(str_cat("an image cannot be encoded as a JPEG: ", encoder.errors.message)));
  }
  return std::move(encoder.bytes);
}

}  // namespace dflow::image::detail
