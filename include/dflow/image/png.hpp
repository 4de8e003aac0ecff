#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/op/build.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace dflow {

/// The element types of a PNG's samples.
using PngTypes = TypeList<std::uint8_t, std::uint16_t>;

/// Decodes a PNG: contents [] -> T [height, width, channels].
struct DecodePng : StandardOp<"DecodePng", PngTypes> {
  struct Attrs {
    std::int64_t channels = 0;  ///< 0: those of the file; 1: grey; 2: grey and alpha; 3: RGB; 4: RGBA
    std::int64_t max_bytes = std::int64_t{1} << 29;
  };
  using Inputs = In<std::string>;
  using Outputs = Out<T>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// Encodes an image as a PNG: image [height, width, channels] -> contents [].
struct EncodePng : StandardOp<"EncodePng", PngTypes> {
  struct Attrs {
    std::int64_t compression = -1;  ///< 0 to 9; -1: zlib's default
  };
  using Inputs = In<T>;
  using Outputs = Out<std::string>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

namespace image {

namespace detail {

/// InvalidArgument if an attribute is out of range.
Status check_attrs(const DecodePng::Attrs& attrs);
Status check_attrs(const EncodePng::Attrs& attrs);

/// An error for channels that no PNG has; `channels` may be unknown.
Status check_png_channels(std::int64_t channels);

AnyTensor decode_png_as(DType dtype, std::string_view contents, const DecodePng::Attrs& attrs);
std::string encode_any_png(const AnyTensor& image, const EncodePng::Attrs& attrs);

}  // namespace detail

/// A node that decodes a PNG. contents: []. The output is [height, width, channels].
///
/// - If `channels` is 0, the output has the file's channels: 1 to 4. A palette becomes RGB or RGBA.
/// - Samples of 8 bits and fewer become uint16 times 257. Samples of 16 bits become uint8 by their high byte.
/// - Alpha that a file lacks is opaque. If it is not wanted, it is dropped and nothing is blended.
/// - An image of more than `max_bytes` is refused before memory is taken. Texts in a file are passed over.
///
/// ```cpp
/// auto depth = df::image::decode_png<std::uint16_t>(contents, {.channels = 1});
/// ```
/// Errors: InvalidArgument for attributes out of range. In the step, InvalidArgument for a file that is corrupt, cut,
/// too large or no PNG.
template <AllowedFor<DecodePng> T = std::uint8_t>
Output<T> decode_png(const Output<std::string>& contents, DecodePng::Attrs attrs = {}, const At& at = {}) {
  return Output<T>::unchecked(build<DecodePng>({contents}, attrs, at, type_args<T>()));
}

/// The plain function of the same name, for datasets: the image [height, width, channels] of a file's bytes.
///
/// Thread safety: safe. Errors: as in the step.
template <AllowedFor<DecodePng> T = std::uint8_t>
Tensor<T> decode_png(std::string_view contents, const DecodePng::Attrs& attrs = {}) {
  return Tensor<T>(detail::decode_png_as(dtype_of<T>, contents, attrs));
}

/// A node that encodes an image as a PNG of 8 or 16 bits. image: [height, width, channels] with 1 to 4 channels: grey,
/// grey and alpha, RGB, RGBA.
///
/// Errors: InvalidArgument for a compression out of range and for other channels; in the step for an image without
/// pixels.
template <AllowedFor<EncodePng> T>
Output<std::string> encode_png(const Output<T>& image, EncodePng::Attrs attrs = {}, const At& at = {}) {
  return Output<std::string>::unchecked(build<EncodePng>({image}, attrs, at));
}

/// The plain function of the same name: the bytes of a file.
///
/// Thread safety: safe. Errors: as in the step.
template <AllowedFor<EncodePng> T>
std::string encode_png(const Tensor<T>& image, const EncodePng::Attrs& attrs = {}) {
  return detail::encode_any_png(image, attrs);
}

}  // namespace image

}  // namespace dflow
