#pragma once

#include <dflow/core/shape.hpp>
#include <dflow/image/png.hpp>
#include <dflow/kernels/cpu/image/codec/jpeg_codec.hpp>

#include <string>
#include <string_view>

namespace dflow::image::detail {

/// Decodes a PNG to samples of 8 or 16 bits into the memory that `make` takes once the header is read. Errors: as of
/// `decode_png`.
void decode_png_into(bool is_16, std::string_view contents, const DecodePng::Attrs& attrs, MakeImage make);

/// The bytes of a PNG of an image with samples of 8 or 16 bits. Errors: as of `encode_png`.
std::string encode_png_of(bool is_16, const void* pixels, const Shape& shape, const EncodePng::Attrs& attrs);

}  // namespace dflow::image::detail
