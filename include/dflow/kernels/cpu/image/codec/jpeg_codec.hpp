#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/core/shape.hpp>
#include <dflow/image/jpeg.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace dflow::image::detail {

/// Takes the memory of an image of the shape, for its elements.
using MakeImage = FunctionRef<void*(const Shape&)>;

/// Decodes a JPEG into the memory that `make` takes once the header is read. Errors: as of `decode_jpeg`.
void decode_jpeg_into(std::string_view contents, const DecodeJpeg::Attrs& attrs, MakeImage make);

/// The bytes of a JPEG of an image of that shape. Errors: as of `encode_jpeg`.
std::string encode_jpeg_of(const std::uint8_t* pixels, const Shape& shape, const EncodeJpeg::Attrs& attrs);

}  // namespace dflow::image::detail
