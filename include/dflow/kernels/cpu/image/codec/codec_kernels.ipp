#pragma once

#include <dflow/kernels/cpu/image/codec/codec_kernels.hpp>

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cpu/image/codec/jpeg_codec.hpp>
#include <dflow/kernels/cpu/image/codec/png_codec.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace dflow {

namespace image {

namespace detail {

/// Decodes by either decoder. Samples other than those that the decoders make are made of theirs.
void decode_image_into(DType dtype, std::string_view contents, const DecodeImage::Attrs& attrs, MakeImage make) {
  throw_if_error(check_attrs(attrs));
  const bool is_png = contents.starts_with("\x89PNG\r\n\x1a\n"), is_jpeg = contents.starts_with("\xff\xd8\xff");
  if (!is_png && !is_jpeg) {
    throw_error(Status::invalid_argument(str_cat("a text of ", contents.size(), " bytes is neither a JPEG nor a PNG")));
  }
  AnyTensor samples;
  const auto decode = [&](DType made, MakeImage target) {
    if (is_jpeg) {
      decode_jpeg_into(contents, {.channels = attrs.channels, .max_bytes = attrs.max_bytes}, target);
    } else {
      decode_png_into(made == DType::uint16, contents, {.channels = attrs.channels, .max_bytes = attrs.max_bytes},
                      target);
    }
  };
  const DType made = is_jpeg || dtype == DType::uint8 ? DType::uint8 : DType::uint16;
  if (made == dtype) return decode(made, make);
  decode(made, [&](const Shape& shape) -> void* {
    samples = AnyTensor(made, shape);
    return samples.raw_data();
  });
  void* const pixels = make(samples.shape());
  const std::int64_t count = samples.num_elements();
  const auto convert = [count](const auto* from, auto* to, auto factor) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::remove_cvref_t<decltype(*to)>>(from[i] * factor);
  };
  if (dtype == DType::uint16) {
    convert(Tensor<std::uint8_t>::of(samples).data(), static_cast<std::uint16_t*>(pixels), 256);
  } else if (is_jpeg) {
    convert(Tensor<std::uint8_t>::of(samples).data(), static_cast<float*>(pixels), 1.0f / 255);
  } else {
    convert(Tensor<std::uint16_t>::of(samples).data(), static_cast<float*>(pixels), 1.0f / 65535);
  }
}

AnyTensor decode_png_as(DType dtype, std::string_view contents, const DecodePng::Attrs& attrs) {
  AnyTensor image;
  decode_png_into(dtype == DType::uint16, contents, attrs, [&](const Shape& shape) -> void* {
    image = AnyTensor(dtype, shape);
    return image.raw_data();
  });
  return image;
}

std::string encode_any_png(const AnyTensor& image, const EncodePng::Attrs& attrs) {
  return encode_png_of(image.dtype() == DType::uint16, image.raw_data(), image.shape(), attrs);
}

AnyTensor decode_image_as(DType dtype, std::string_view contents, const DecodeImage::Attrs& attrs) {
  AnyTensor image;
  decode_image_into(dtype, contents, attrs, [&](const Shape& shape) -> void* {
    image = AnyTensor(dtype, shape);
    return image.raw_data();
  });
  return image;
}

/// The bytes of the kernel's file. Errors: InvalidArgument if it is not one.
const std::string& contents_of(const KernelContext& context) {
  const Tensor<std::string>& contents = context.input<std::string>(0);
  if (contents.rank() != 0)
    context.fail(str_cat("the contents of a file are a scalar, not of shape ", contents.shape().to_string()));
  return *contents.data();
}

void put_contents(KernelContext& context, std::string contents) {
  *context.allocate_output<std::string>(0, Shape()).data() = std::move(contents);
}

}  // namespace detail

Tensor<std::uint8_t> decode_jpeg(std::string_view contents, const DecodeJpeg::Attrs& attrs) {
  Tensor<std::uint8_t> image;
  detail::decode_jpeg_into(contents, attrs, [&](const Shape& shape) -> void* {
    image = Tensor<std::uint8_t>(shape);
    return image.data();
  });
  return image;
}

std::string encode_jpeg(const Tensor<std::uint8_t>& image, const EncodeJpeg::Attrs& attrs) {
  return detail::encode_jpeg_of(image.data(), image.shape(), attrs);
}

}  // namespace image

void Kernel<DecodeJpeg, Cpu>::operator()(KernelContext& context) const {
  image::detail::decode_jpeg_into(image::detail::contents_of(context), attrs, [&](const Shape& shape) -> void* {
    return context.allocate_output(0, shape).raw_data();
  });
}

void Kernel<DecodePng, Cpu>::operator()(KernelContext& context) const {
  const bool is_16 = context.output_dtype(0) == DType::uint16;
  image::detail::decode_png_into(is_16, image::detail::contents_of(context), attrs, [&](const Shape& shape) -> void* {
    return context.allocate_output(0, shape).raw_data();
  });
}

void Kernel<DecodeImage, Cpu>::operator()(KernelContext& context) const {
  const DType dtype = context.output_dtype(0);
  image::detail::decode_image_into(dtype, image::detail::contents_of(context), attrs, [&](const Shape& shape) -> void* {
    return context.allocate_output(0, shape).raw_data();
  });
}

void Kernel<EncodeJpeg, Cpu>::operator()(KernelContext& context) const {
  const Tensor<std::uint8_t>& pixels = context.input<std::uint8_t>(0);
  image::detail::put_contents(context, image::encode_jpeg(pixels, attrs));
}

void Kernel<EncodePng, Cpu>::operator()(KernelContext& context) const {
  image::detail::put_contents(context, image::detail::encode_any_png(context.input(0), attrs));
}

}  // namespace dflow
