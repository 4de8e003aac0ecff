#pragma once

#include <dflow/base/config.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/io/summary/histogram.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dflow {

class ProtoReader;
class ProtoWriter;

/// An encoded image and its extents.
struct SummaryImage {
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::int32_t colorspace = 0;  ///< 1 grey, 2 grey and opacity, 3 RGB, 4 RGBA
  std::string encoded;          ///< a PNG file

  friend bool operator==(const SummaryImage&, const SummaryImage&) = default;
};

/// An encoded sound and its extents.
struct SummaryAudio {
  float sample_rate = 0;  ///< a second
  std::int64_t channels = 0;
  std::int64_t frames = 0;
  std::string encoded;  ///< a file of `content_type`
  std::string content_type = "audio/wav";

  friend bool operator==(const SummaryAudio&, const SummaryAudio&) = default;
};

/// What kind of thing a value of a plugin of TensorBoard is; the numbers are those of summary.proto.
enum class SummaryDataClass : std::int32_t { unknown = 0, scalar = 1, tensor = 2, blob_sequence = 3 };

/// One value under one tag: a scalar, a histogram, an image, a sound, or a tensor that a plugin of TensorBoard shows.
struct SummaryValue {
  std::string tag;
  std::variant<std::monostate, float, Histogram, SummaryImage, SummaryAudio, AnyTensor> value;
  std::string plugin;          ///< which of TensorBoard's plugins shows it; empty for what `value` says itself
  std::string plugin_content;  ///< for that plugin
  std::string display_name;
  std::string description;  ///< Markdown
  SummaryDataClass data_class = SummaryDataClass::unknown;
};

/// What is recorded of one step (tensorflow/core/framework/summary.proto), as summary ops give it.
///
/// Thread safety: a value type.
struct Summary {
  std::vector<SummaryValue> values;
};

/// Red, or white in grey.
inline constexpr std::array<std::uint8_t, 4> red_pixel{255, 0, 0, 255};

/// The values that TensorBoard shows. Tags with '/' are grouped by what stands before it.
///
/// Errors, naming the tag: InvalidArgument for tensors of another type or shape than is said.
SummaryValue scalar_summary(std::string_view tag, double value);
/// Of all elements. Errors also: InvalidArgument for NaN and infinity, as in TensorFlow.
SummaryValue histogram_summary(std::string_view tag, const AnyTensor& values);
/// image: [height, width, channels] or, under "tag/image/0" and so on, [batch, height, width, channels] of which at
/// most `max_images` are taken (where that is 1, under "tag/image"); 1, 3 or 4 channels; uint8, or floats (float,
/// double, half, bfloat16), which are scaled as in TensorFlow: if none is negative so that the largest is 255, else so
/// that 0 is 128 and what is farthest from it 1 or 255. Pixels with a value that is not finite have the first
/// `channels` values of `bad_color`. Errors also: InvalidArgument for a bad_color of fewer, if the image is of floats.
std::vector<SummaryValue> image_summary(std::string_view tag, const AnyTensor& image, int max_images = 3,
                                        std::span<const std::uint8_t> bad_color = red_pixel);
/// samples: floats [frames] or [frames, channels] in -1 to 1.
SummaryValue audio_summary(std::string_view tag, const AnyTensor& samples, std::int64_t sample_rate);
/// Markdown.
SummaryValue text_summary(std::string_view tag, std::string_view text);

/// The bytes of a Summary. Of tags, names and descriptions, which readers take for UTF-8 or not at all, what is none is
/// U+FFFD. Errors: InvalidArgument for a tensor whose elements no TensorProto has.
std::string serialize(const Summary& summary);

/// Errors: DataLoss with the offset; also for tensors that have more than `max_filled_elements` all together and fewer
/// values.
Summary parse_summary(std::string_view bytes);

/// What `plugin` and the members behind it say, as the bytes of a SummaryMetadata.
std::string serialize_metadata(const SummaryValue& value);

/// Sets them. Errors: DataLoss with the offset.
void parse_metadata(std::string_view bytes, SummaryValue& value);

namespace detail {
/// A field that readers take for UTF-8: what is none is U+FFFD.
void write_text(ProtoWriter& out, std::uint32_t number, std::string_view text);
/// As a part of another message.
void write_summary(ProtoWriter& out, const Summary& summary);
Summary read_summary(ProtoReader in);
}  // namespace detail

}  // namespace dflow
