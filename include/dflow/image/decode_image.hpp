#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/op/build.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace dflow {

/// The element types of DecodeImage.
using DecodeImageTypes = TypeList<std::uint8_t, std::uint16_t, float>;

/// Decodes a JPEG or a PNG, whichever the first bytes say: contents [] -> T [height, width, channels].
struct DecodeImage : StandardOp<"DecodeImage", DecodeImageTypes> {
  struct Attrs {
    std::int64_t channels = 0;  ///< 0: those of the file; 1: grey; 3: RGB; a PNG also 2 and 4
    std::int64_t max_bytes = std::int64_t{1} << 29;
  };
  using Inputs = In<std::string>;
  using Outputs = Out<T>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

namespace image {

namespace detail {
/// InvalidArgument if an attribute is out of range.
Status check_attrs(const DecodeImage::Attrs& attrs);
AnyTensor decode_image_as(DType dtype, std::string_view contents, const DecodeImage::Attrs& attrs);
}  // namespace detail

/// A node that decodes a JPEG or a PNG. contents: []. The output is [height, width, channels].
///
/// - uint8 is what `decode_jpeg` and `decode_png` give.
/// - uint16: the samples of a JPEG times 256, and those of a PNG by `decode_png<std::uint16_t>`.
/// - float is in [0, 1]: the samples of a JPEG by 255, and the 16 bits of a PNG by 65535.
///
/// `max_bytes` limits the samples as the file's decoder makes them: 1 byte each, or 2 for a PNG to uint16 or float.
///
/// ```cpp
/// auto pixels = df::image::decode_image<float>(contents, {.channels = 3});
/// ```
/// Errors: InvalidArgument for attributes out of range. In the step, InvalidArgument for a file that is corrupt, cut,
/// too large or neither.
template <AllowedFor<DecodeImage> T = std::uint8_t>
Output<T> decode_image(const Output<std::string>& contents, DecodeImage::Attrs attrs = {}, const At& at = {}) {
  return Output<T>::unchecked(build<DecodeImage>({contents}, attrs, at, type_args<T>()));
}

/// The plain function of the same name, for datasets: the image [height, width, channels] of a file's bytes.
///
/// Thread safety: safe. Errors: as in the step.
template <AllowedFor<DecodeImage> T = std::uint8_t>
Tensor<T> decode_image(std::string_view contents, const DecodeImage::Attrs& attrs = {}) {
  return Tensor<T>(detail::decode_image_as(dtype_of<T>, contents, attrs));
}

}  // namespace image

}  // namespace dflow
