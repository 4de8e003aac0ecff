#pragma once

#include <dflow/image/jpeg.hpp>

#include <dflow/base/str_cat.hpp>

#include <utility>

namespace dflow {

namespace image::detail {

Status check_attrs(const DecodeJpeg::Attrs& attrs) {
  if (attrs.channels != 0 && attrs.channels != 1 && attrs.channels != 3) {
    return Status::invalid_argument(
        str_cat("channels is ", attrs.channels, ": a JPEG is decoded to 1 or 3, or 0 for its own"));
  }
  if (attrs.ratio != 1 && attrs.ratio != 2 && attrs.ratio != 4 && attrs.ratio != 8) {
    return Status::invalid_argument(str_cat("ratio is ", attrs.ratio, ": it must be 1, 2, 4 or 8"));
  }
  if (!attrs.dct_method.empty() && attrs.dct_method != "INTEGER_FAST" && attrs.dct_method != "INTEGER_ACCURATE") {
    return Status::invalid_argument(
        str_cat("dct_method is '", attrs.dct_method, "': it must be INTEGER_FAST or INTEGER_ACCURATE"));
  }
  if (attrs.max_bytes < 1)
    return Status::invalid_argument(str_cat("max_bytes is ", attrs.max_bytes, ": it must be positive"));
  return {};
}

Status check_attrs(const EncodeJpeg::Attrs& attrs) {
  if (!attrs.format.empty() && attrs.format != "grayscale" && attrs.format != "rgb") {
    return Status::invalid_argument(str_cat("format is '", attrs.format, "': it must be grayscale or rgb, or empty"));
  }
  if (attrs.quality < 0 || attrs.quality > 100) {
    return Status::invalid_argument(str_cat("quality is ", attrs.quality, ": it must be from 0 to 100"));
  }
  if (attrs.density_unit != "in" && attrs.density_unit != "cm") {
    return Status::invalid_argument(str_cat("density_unit is '", attrs.density_unit, "': it must be in or cm"));
  }
  for (const std::int64_t density : {attrs.x_density, attrs.y_density}) {
    if (density < 0 || density > 65535) {
      return Status::invalid_argument(str_cat("a density is ", density, ": it must be from 0 to 65535"));
    }
  }
  return {};
}

Status check_channels(const EncodeJpeg::Attrs& attrs, std::int64_t channels) {
  if (channels == dynamic) return {};
  const bool may_be_grey = attrs.format != "rgb", may_be_rgb = attrs.format != "grayscale";
  if ((may_be_grey && channels == 1) || (may_be_rgb && channels == 3)) return {};
  const char* const wanted = !may_be_rgb ? "1" : !may_be_grey ? "3" : "1 or 3";
  return Status::invalid_argument(str_cat("an image has ", channels, " channels: this JPEG takes ", wanted));
}

PartialShape shape_of_decoded(const InferContext& context, std::int64_t channels) {
  context.with_rank(0, 0);
  return {dynamic, dynamic, channels == 0 ? dynamic : channels};
}

}  // namespace image::detail

void DecodeJpeg::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<DecodeJpeg>();
  throw_if_error(image::detail::check_attrs(attrs));
  context.set_output(0, image::detail::shape_of_decoded(context, attrs.channels));
}

void EncodeJpeg::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<EncodeJpeg>();
  throw_if_error(image::detail::check_attrs(attrs));
  throw_if_error(image::detail::check_channels(attrs, context.with_rank(0, 3)[2]));
  context.set_output(0, PartialShape({}));
}

namespace image {

Output<std::uint8_t> decode_jpeg(const Output<std::string>& contents, DecodeJpeg::Attrs attrs, const At& at) {
  return Output<std::uint8_t>::unchecked(build<DecodeJpeg>({contents}, std::move(attrs), at));
}

Output<std::string> encode_jpeg(const Output<std::uint8_t>& image, EncodeJpeg::Attrs attrs, const At& at) {
  return Output<std::string>::unchecked(build<EncodeJpeg>({image}, std::move(attrs), at));
}

}  // namespace image

}  // namespace dflow
