#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/proto/proto_reader.hpp>
#include <dflow/io/proto/proto_writer.hpp>
#include <dflow/io/summary/png.hpp>
#include <dflow/io/summary/summary.hpp>
#include <dflow/io/summary/tensor_proto.hpp>
#include <dflow/io/summary/wav.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace dflow {

namespace detail {

[[noreturn]] void fail_summary(std::string_view tag, std::string_view what, const AnyTensor& tensor) {
  throw_error(Status::invalid_argument(
      str_cat("summary '", tag, "': ", what, ", not ", dtype_name(tensor.dtype()), tensor.shape().to_string())));
}

SummaryValue summary_value(std::string_view tag) {
  SummaryValue value;
  value.tag = tag;
  return value;
}

/// One image of floats as bytes, scaled as image_summary says. T is float or double, as in TensorFlow.
template <class T>
std::vector<std::uint8_t> scaled_pixels(std::span<const T> values, std::size_t channels,
                                        std::span<const std::uint8_t> bad_color) {
  constexpr T vanishing = T(1e-6);
  const auto is_finite = [&](std::size_t pixel) {
    const auto of_pixel = values.subspan(pixel, channels);
    return std::all_of(of_pixel.begin(), of_pixel.end(), [](T value) { return std::isfinite(value); });
  };
  T least = std::numeric_limits<T>::infinity(), most = -least;
  for (std::size_t pixel = 0; pixel < values.size(); pixel += channels) {
    if (!is_finite(pixel)) continue;
    const auto [low, high] = std::minmax_element(&values[pixel], &values[pixel] + channels);
    least = std::min(least, *low);
    most = std::max(most, *high);
  }
  const bool is_signed = least < 0;
  const T farthest = is_signed ? std::max(std::abs(least), std::abs(most)) : most;
  const T scale = farthest < vanishing ? T(0) : T(is_signed ? 127 : 255) / farthest;
  const T offset = is_signed ? T(128) : T(0);
  std::vector<std::uint8_t> pixels(values.size());
  for (std::size_t pixel = 0; pixel < values.size(); pixel += channels) {
    const bool is_shown = is_finite(pixel);
    for (std::size_t i = 0; i < channels; ++i) {
      pixels[pixel + i] = is_shown ? static_cast<std::uint8_t>(values[pixel + i] * scale + offset) : bad_color[i];
    }
  }
  return pixels;
}

/// The pixels of one image [height, width, channels].
std::vector<std::uint8_t> pixels_of(const AnyTensor& image, std::span<const std::uint8_t> bad_color) {
  return visit_dtype<TypeList<std::uint8_t, float, double, Half, BFloat16>>(image.dtype(), [&]<class T>() {
    const std::span<const T> elements = image.span<T>();
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      return std::vector<std::uint8_t>(elements.begin(), elements.end());
    } else {
      using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
      std::vector<Real> values;
      values.reserve(elements.size());
      for (const T element : elements) values.push_back(static_cast<Real>(element));
      return scaled_pixels(std::span<const Real>(values), static_cast<std::size_t>(image.dim(2)), bad_color);
    }
  });
}

SummaryValue summary_of_image(std::string tag, const AnyTensor& image, std::span<const std::uint8_t> bad_color) {
  SummaryValue value = summary_value(tag);
  value.value = SummaryImage{static_cast<std::int32_t>(image.dim(0)), static_cast<std::int32_t>(image.dim(1)),
                             static_cast<std::int32_t>(image.dim(2)),
                             encode_png(pixels_of(image, bad_color), image.dim(0), image.dim(1), image.dim(2))};
  return value;
}

}  // namespace detail

SummaryValue scalar_summary(std::string_view tag, double value) {
  SummaryValue summary = detail::summary_value(tag);
  summary.value = static_cast<float>(value);
  return summary;
}

SummaryValue histogram_summary(std::string_view tag, const AnyTensor& values) {
  SummaryValue summary = detail::summary_value(tag);
  try {
    summary.value = histogram_of(values);
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("summary '", tag, "': ")));
  }
  return summary;
}

std::vector<SummaryValue> image_summary(std::string_view tag, const AnyTensor& image, int max_images,
                                        std::span<const std::uint8_t> bad_color) {
  constexpr std::uint32_t allowed = dtype_mask<TypeList<std::uint8_t, float, double, Half, BFloat16>>;
  constexpr std::int64_t max_extent = std::numeric_limits<std::int32_t>::max();
  const int rank = image.rank();
  const std::int64_t channels = rank < 3 ? 0 : image.dim(rank - 1);
  const bool fits =
      (rank == 3 || rank == 4) && in_mask(image.dtype(), allowed) && (channels == 1 || channels == 3 || channels == 4);
  if (!fits || image.dim(rank - 2) > max_extent || image.dim(rank - 3) > max_extent || image.dim(rank - 2) == 0 ||
      image.dim(rank - 3) == 0) {
    detail::fail_summary(tag, "an image is uint8 or floats [height, width, channels] with 1, 3 or 4 channels", image);
  }
  if (image.dtype() != DType::uint8 && static_cast<std::int64_t>(bad_color.size()) < channels) {
    detail::fail_summary(tag, str_cat("a bad_color of ", bad_color.size(), " channels is of a smaller image"), image);
  }
  std::vector<SummaryValue> images;
  if (rank == 3) {
    images.push_back(detail::summary_of_image(std::string(tag), image, bad_color));
    return images;
  }
  const Shape shape = image.shape().subshape(1, 4);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(image.dim(0), max_images); ++i) {
    std::string name = max_images > 1 ? str_cat(tag, "/image/", i) : str_cat(tag, "/image");
    images.push_back(detail::summary_of_image(std::move(name), image.slice(i, i + 1).reshaped(shape), bad_color));
  }
  return images;
}

SummaryValue audio_summary(std::string_view tag, const AnyTensor& samples, std::int64_t sample_rate) {
  if (samples.dtype() != DType::float32 || samples.rank() < 1 || samples.rank() > 2) {
    detail::fail_summary(tag, "sound is floats [frames] or [frames, channels]", samples);
  }
  SummaryValue value = detail::summary_value(tag);
  const std::int64_t channels = samples.rank() == 2 ? samples.dim(1) : 1;
  try {
    value.value = SummaryAudio{static_cast<float>(sample_rate), channels, samples.dim(0),
                               encode_wav(Tensor<float>::of(samples).span(), channels, sample_rate)};
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat("summary '", tag, "': ")));
  }
  return value;
}

SummaryValue text_summary(std::string_view tag, std::string_view text) {
  SummaryValue value = detail::summary_value(tag);
  value.value = Tensor<std::string>(std::string(text)).any();
  value.plugin = "text";
  value.data_class = SummaryDataClass::tensor;
  return value;
}

namespace detail {

void write_text(ProtoWriter& out, std::uint32_t number, std::string_view text) { out.bytes(number, valid_utf8(text)); }

void write_histogram(ProtoWriter& out, const Histogram& histogram) {
  out.float64(1, histogram.min);
  out.float64(2, histogram.max);
  out.float64(3, histogram.count);
  out.float64(4, histogram.sum);
  out.float64(5, histogram.sum_squares);
  out.packed(6, std::span<const double>(histogram.limits));
  out.packed(7, std::span<const double>(histogram.counts));
}

void write_summary_metadata(ProtoWriter& out, const SummaryValue& value) {
  if (!value.plugin.empty()) {
    out.message(1, [&](ProtoWriter& plugin) {
      write_text(plugin, 1, value.plugin);
      if (!value.plugin_content.empty()) plugin.bytes(2, value.plugin_content);
    });
  }
  if (!value.display_name.empty()) write_text(out, 2, value.display_name);
  if (!value.description.empty()) write_text(out, 3, value.description);
  if (value.data_class != SummaryDataClass::unknown) out.int64(4, static_cast<std::int64_t>(value.data_class));
}

void write_summary_value(ProtoWriter& out, const SummaryValue& summary) {
  write_text(out, 1, summary.tag);
  if (const auto* scalar = std::get_if<float>(&summary.value)) out.float32(2, *scalar);
  if (const auto* image = std::get_if<SummaryImage>(&summary.value)) {
    out.message(4, [&](ProtoWriter& fields) {
      fields.int64(1, image->height);
      fields.int64(2, image->width);
      fields.int64(3, image->colorspace);
      fields.bytes(4, image->encoded);
    });
  }
  if (const auto* histogram = std::get_if<Histogram>(&summary.value)) {
    out.message(5, [&](ProtoWriter& fields) { write_histogram(fields, *histogram); });
  }
  if (const auto* audio = std::get_if<SummaryAudio>(&summary.value)) {
    out.message(6, [&](ProtoWriter& fields) {
      fields.float32(1, audio->sample_rate);
      fields.int64(2, audio->channels);
      fields.int64(3, audio->frames);
      fields.bytes(4, audio->encoded);
      write_text(fields, 5, audio->content_type);
    });
  }
  if (const auto* tensor = std::get_if<AnyTensor>(&summary.value)) {
    out.message(8, [&](ProtoWriter& fields) { write_tensor_proto(fields, *tensor); });
  }
  if (!summary.plugin.empty() || !summary.display_name.empty() || !summary.description.empty() ||
      summary.data_class != SummaryDataClass::unknown) {
    out.message(9, [&](ProtoWriter& metadata) { write_summary_metadata(metadata, summary); });
  }
}

Histogram read_histogram(ProtoReader in) {
  const ProtoReader start = in;
  Histogram histogram;
  histogram.min = histogram.max = 0;  // missing fields are 0
  while (in.next()) {
    if (in.number() == 1) histogram.min = in.float64();
    if (in.number() == 2) histogram.max = in.float64();
    if (in.number() == 3) histogram.count = in.float64();
    if (in.number() == 4) histogram.sum = in.float64();
    if (in.number() == 5) histogram.sum_squares = in.float64();
    if (in.number() == 6) in.append_to(histogram.limits);
    if (in.number() == 7) in.append_to(histogram.counts);
  }
  if (histogram.limits.size() != histogram.counts.size())
    start.fail("a histogram with more limits than buckets, or fewer");
  return histogram;
}

SummaryImage read_summary_image(ProtoReader in) {
  SummaryImage image;
  while (in.next()) {
    if (in.number() == 1) image.height = in.int32();
    if (in.number() == 2) image.width = in.int32();
    if (in.number() == 3) image.colorspace = in.int32();
    if (in.number() == 4) image.encoded = in.bytes();
  }
  return image;
}

SummaryAudio read_summary_audio(ProtoReader in) {
  SummaryAudio audio;
  audio.content_type.clear();
  while (in.next()) {
    if (in.number() == 1) audio.sample_rate = in.float32();
    if (in.number() == 2) audio.channels = in.int64();
    if (in.number() == 3) audio.frames = in.int64();
    if (in.number() == 4) audio.encoded = in.bytes();
    if (in.number() == 5) audio.content_type = in.bytes();
  }
  return audio;
}

void read_summary_metadata(ProtoReader in, SummaryValue& value) {
  while (in.next()) {
    if (in.number() == 1) {
      for (ProtoReader plugin = in.message(); plugin.next();) {
        if (plugin.number() == 1) value.plugin = plugin.bytes();
        if (plugin.number() == 2) value.plugin_content = plugin.bytes();
      }
    }
    if (in.number() == 2) value.display_name = in.bytes();
    if (in.number() == 3) value.description = in.bytes();
    if (in.number() == 4) value.data_class = static_cast<SummaryDataClass>(in.int32());
  }
}

/// Nothing for a tensor that dflow lacks.
std::optional<AnyTensor> read_summary_tensor(ProtoReader in, std::int64_t& elements_left) {
  try {
    return read_tensor_proto(in, elements_left);
  } catch (const Error& error) {
    if (error.code() != Code::unimplemented) throw;
    return std::nullopt;
  }
}

/// The scalar in a tensor of the plugin "scalars"; nothing for any other tensor.
std::optional<float> scalar_of(const AnyTensor& tensor) {
  if (tensor.num_elements() != 1 || !is_real(tensor.dtype())) return std::nullopt;
  return visit_dtype<RealTypes>(tensor.dtype(), [&]<class T>() { return static_cast<float>(tensor.span<T>()[0]); });
}

SummaryValue read_summary_value(ProtoReader in, std::int64_t& elements_left) {
  SummaryValue value;
  while (in.next()) {
    if (in.number() == 1) value.tag = in.bytes();
    if (in.number() == 2) value.value = in.float32();
    if (in.number() == 4) value.value = read_summary_image(in.message());
    if (in.number() == 5) value.value = read_histogram(in.message());
    if (in.number() == 6) value.value = read_summary_audio(in.message());
    if (in.number() == 8) {
      if (auto tensor = read_summary_tensor(in.message(), elements_left)) value.value = *std::move(tensor);
    }
    if (in.number() == 9) read_summary_metadata(in.message(), value);
  }
  if (const auto* tensor = std::get_if<AnyTensor>(&value.value); tensor != nullptr && value.plugin == "scalars") {
    if (const std::optional<float> scalar = scalar_of(*tensor)) value.value = *scalar;
  }
  return value;
}

void write_summary(ProtoWriter& out, const Summary& summary) {
  for (const SummaryValue& value : summary.values) {
    out.message(1, [&](ProtoWriter& fields) { write_summary_value(fields, value); });
  }
}

Summary read_summary(ProtoReader in) {
  Summary summary;
  std::int64_t elements_left = max_filled_elements;
  while (in.next()) {
    if (in.number() == 1) summary.values.push_back(read_summary_value(in.message(), elements_left));
  }
  return summary;
}

}  // namespace detail

std::string serialize(const Summary& summary) {
  std::string bytes;
  ProtoWriter out(bytes);
  detail::write_summary(out, summary);
  return bytes;
}

std::string serialize_metadata(const SummaryValue& value) {
  std::string bytes;
  ProtoWriter out(bytes);
  detail::write_summary_metadata(out, value);
  return bytes;
}

void parse_metadata(std::string_view bytes, SummaryValue& value) {
  detail::read_summary_metadata(ProtoReader(bytes), value);
}

Summary parse_summary(std::string_view bytes) { return detail::read_summary(ProtoReader(bytes)); }

}  // namespace dflow
