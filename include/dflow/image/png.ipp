#pragma once

#include <dflow/image/png.hpp>

#include <dflow/base/str_cat.hpp>
#include <dflow/image/jpeg.hpp>

namespace dflow {

namespace image::detail {

Status check_attrs(const DecodePng::Attrs& attrs) {
  if (attrs.channels < 0 || attrs.channels > 4) {
    return Status::invalid_argument(
        str_cat("channels is ", attrs.channels, ": a PNG is decoded to 1 to 4, or 0 for its own"));
  }
  if (attrs.max_bytes < 1)
    return Status::invalid_argument(str_cat("max_bytes is ", attrs.max_bytes, ": it must be positive"));
  return {};
}

Status check_attrs(const EncodePng::Attrs& attrs) {
  if (attrs.compression >= -1 && attrs.compression <= 9) return {};
  return Status::invalid_argument(str_cat("compression is ", attrs.compression, ": it must be from -1 to 9"));
}

Status check_png_channels(std::int64_t channels) {
  if (channels == dynamic || (channels >= 1 && channels <= 4)) return {};
  return Status::invalid_argument(str_cat("an image has ", channels, " channels: a PNG takes 1 to 4"));
}

}  // namespace image::detail

void DecodePng::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<DecodePng>();
  throw_if_error(image::detail::check_attrs(attrs));
  context.set_output(0, image::detail::shape_of_decoded(context, attrs.channels));
}

void EncodePng::infer(InferContext& context) {
  throw_if_error(image::detail::check_attrs(context.attrs<EncodePng>()));
  throw_if_error(image::detail::check_png_channels(context.with_rank(0, 3)[2]));
  context.set_output(0, PartialShape({}));
}

}  // namespace dflow
