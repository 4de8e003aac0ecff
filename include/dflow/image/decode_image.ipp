#pragma once

#include <dflow/image/decode_image.hpp>

#include <dflow/image/jpeg.hpp>
#include <dflow/image/png.hpp>

namespace dflow {

Status image::detail::check_attrs(const DecodeImage::Attrs& attrs) {
  return check_attrs(DecodePng::Attrs{.channels = attrs.channels, .max_bytes = attrs.max_bytes});
}

void DecodeImage::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<DecodeImage>();
  throw_if_error(image::detail::check_attrs(attrs));
  context.set_output(0, image::detail::shape_of_decoded(context, attrs.channels));
}

}  // namespace dflow
