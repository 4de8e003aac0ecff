#pragma once

/// Public: images in JPEG and PNG files: ops and plain functions that decode and encode. A program that includes this
/// header links the component `dflow::image`, which needs libjpeg and libpng.

#include <dflow/image/decode_image.hpp>
#include <dflow/image/jpeg.hpp>
#include <dflow/image/png.hpp>
#include <dflow/op/op_table.hpp>

namespace dflow {

/// The ops of the component `dflow::image`. They are not among the standard ops, because a program that has them links
/// libjpeg and libpng:
///
/// ```cpp
/// df::Session session(graph, {.ops = df::standard_ops + df::image_ops});
/// ```
inline constexpr auto image_ops = ops<DecodeImage, DecodeJpeg, DecodePng, EncodeJpeg, EncodePng>;

}  // namespace dflow
