#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/op/build.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace dflow {

/// Decodes a JPEG: contents [] -> uint8 [height, width, channels].
struct DecodeJpeg : StandardOp<"DecodeJpeg"> {
  struct Attrs {
    std::int64_t channels = 0;  ///< 0: those of the file; 1: grey; 3: RGB
    std::int64_t ratio = 1;     ///< 1, 2, 4 or 8: the image is smaller by that factor
    bool fancy_upscaling = true;
    bool try_recover_truncated = false;  ///< the rows that a file lacks repeat the last row
    float acceptable_fraction = 1;       ///< of the rows; the rows that a file lacks are black
    std::string dct_method = "";         ///< "INTEGER_FAST", the default, or "INTEGER_ACCURATE"
    std::int64_t max_bytes = std::int64_t{1} << 29;
  };
  using Inputs = In<std::string>;
  using Outputs = Out<std::uint8_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// Encodes an image as a JPEG: image [height, width, channels] -> contents [].
struct EncodeJpeg : StandardOp<"EncodeJpeg"> {
  struct Attrs {
    std::string format = "";    ///< "grayscale", "rgb", or "" for the one that the channels say
    std::int64_t quality = 95;  ///< 0 to 100
    bool progressive = false;
    bool optimize_size = false;
    bool chroma_downsampling = true;
    std::string density_unit = "in";  ///< or "cm"
    std::int64_t x_density = 300;     ///< pixels in a unit
    std::int64_t y_density = 300;
    std::string xmp_metadata = "";
  };
  using Inputs = In<std::uint8_t>;
  using Outputs = Out<std::string>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

namespace image {

/// A node that decodes a JPEG. contents: []. The output is [height, width, channels].
///
/// - If `channels` is 0, the output has the file's channels: 1 or 3. CMYK becomes RGB.
/// - With a `ratio`, the output has `height / ratio` rows and `width / ratio` columns, both rounded up.
/// - The default `dct_method` is "INTEGER_FAST", as TensorFlow's. "INTEGER_ACCURATE" is libjpeg's own default.
/// - If `try_recover_truncated` is set, a file that ends early is decoded as far as it goes, and the last row repeats.
/// - An image of more than `max_bytes` is refused before memory is taken. The decoder's own memory has four times this
///   limit: progressive files need it. A file of more than 500 scans is refused.
///
/// Files that libjpeg decodes with warnings are decoded, as TensorFlow does.
///
/// ```cpp
/// auto contents = df::placeholder<std::string>(graph, {});
/// auto small = df::image::decode_jpeg(contents, {.channels = 3, .ratio = 2});
/// ```
/// Errors: InvalidArgument for attributes out of range. In the step, InvalidArgument for a file that is corrupt, cut,
/// too large or no JPEG, for 12 bits a sample, and for CMYK if one channel is wanted.
Output<std::uint8_t> decode_jpeg(const Output<std::string>& contents, DecodeJpeg::Attrs attrs = {}, const At& at = {});

/// The plain function of the same name, for datasets: the image [height, width, channels] of a file's bytes.
///
/// Thread safety: safe. Errors: as in the step.
Tensor<std::uint8_t> decode_jpeg(std::string_view contents, const DecodeJpeg::Attrs& attrs = {});

/// A node that encodes an image as a JPEG. image: [height, width, 1 or 3].
///
/// Errors: InvalidArgument for attributes out of range and for channels other than the format's. In the step,
/// InvalidArgument for an image without pixels, or with more than 65500 rows or columns, and for XMP metadata that is
/// longer than a marker, which is about 65,500 bytes.
Output<std::string> encode_jpeg(const Output<std::uint8_t>& image, EncodeJpeg::Attrs attrs = {}, const At& at = {});

/// The plain function of the same name: the bytes of a file.
///
/// Thread safety: safe. Errors: as in the step.
std::string encode_jpeg(const Tensor<std::uint8_t>& image, const EncodeJpeg::Attrs& attrs = {});

namespace detail {

/// InvalidArgument if an attribute is out of range.
Status check_attrs(const DecodeJpeg::Attrs& attrs);
Status check_attrs(const EncodeJpeg::Attrs& attrs);

/// The channels of the images that the format takes, as an error for any other; `channels` may be unknown.
Status check_channels(const EncodeJpeg::Attrs& attrs, std::int64_t channels);

/// The shape of a decoded image. `channels` is 0 if only the file says how many there are.
PartialShape shape_of_decoded(const InferContext& context, std::int64_t channels);

}  // namespace detail

}  // namespace image

}  // namespace dflow
