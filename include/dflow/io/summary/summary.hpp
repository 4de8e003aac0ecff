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

/// The kind of a value of a plugin of TensorBoard; the numbers come from summary.proto.
enum class SummaryDataClass : std::int32_t { unknown = 0, scalar = 1, tensor = 2, blob_sequence = 3 };

/// One value under one tag: a scalar, a histogram, an image, a sound, or a tensor that a plugin of TensorBoard shows.
/// TensorFlow 2 and Keras write each scalar as a tensor of the plugin "scalars": such a tensor of one real number is
/// read as a float, to which doubles and large integers are rounded.
struct SummaryValue {
  std::string tag;
  std::variant<std::monostate, float, Histogram, SummaryImage, SummaryAudio, AnyTensor> value;
  std::string plugin;          ///< TensorBoard's plugin that shows it; empty: the type of `value` decides
  std::string plugin_content;  ///< for that plugin
  std::string display_name;
  std::string description;  ///< Markdown
  SummaryDataClass data_class = SummaryDataClass::unknown;
};

/// The values recorded at one step (tensorflow/core/framework/summary.proto), as summary ops give them.
///
/// Thread safety: a value type.
struct Summary {
  std::vector<SummaryValue> values;
};

/// Red, or white in grey.
inline constexpr std::array<std::uint8_t, 4> red_pixel{255, 0, 0, 255};

/// The values that TensorBoard shows. Tags with '/' are grouped by the text before it.
///
/// Errors, naming the tag: InvalidArgument for a tensor of another type or shape than documented.
SummaryValue scalar_summary(std::string_view tag, double value);
/// A histogram of all elements. Errors also: InvalidArgument for NaN and infinity, as in TensorFlow.
SummaryValue histogram_summary(std::string_view tag, const AnyTensor& values);
/// image: [height, width, channels] with the tag itself, or [batch, height, width, channels] with the tags
/// "tag/image/0" and so on. At most `max_images` of a batch are taken; if that is 1, the image has "tag/image".
/// There are 1, 3 or 4 channels. Elements are uint8 or floats (float, double, half, bfloat16). Floats are scaled as in
/// TensorFlow: if none is negative, the largest becomes 255; else 0 becomes 128 and the value farthest from it 1 or
/// 255. A pixel with a value that is not finite gets the first `channels` values of `bad_color`. Errors also:
/// InvalidArgument for a bad_color with fewer values, if the image is of floats.
std::vector<SummaryValue> image_summary(std::string_view tag, const AnyTensor& image, int max_images = 3,
                                        std::span<const std::uint8_t> bad_color = red_pixel);
/// samples: floats [frames] or [frames, channels] in -1 to 1.
SummaryValue audio_summary(std::string_view tag, const AnyTensor& samples, std::int64_t sample_rate);
/// Markdown.
SummaryValue text_summary(std::string_view tag, std::string_view text);

/// The bytes of a Summary. Readers require tags, names and descriptions to be UTF-8: bytes that are none become
/// U+FFFD. Errors: InvalidArgument for a tensor with elements that no TensorProto has.
std::string serialize(const Summary& summary);

/// A tensor of a type that dflow lacks, or of more than `max_rank` dimensions, is left out: its value is empty.
///
/// Errors: DataLoss with the offset; also for tensors that have more than `max_filled_elements` all together and fewer
/// values.
Summary parse_summary(std::string_view bytes);

/// `plugin` and the members after it, as the bytes of a SummaryMetadata.
std::string serialize_metadata(const SummaryValue& value);

/// Sets `plugin` and the members after it. Errors: DataLoss with the offset.
void parse_metadata(std::string_view bytes, SummaryValue& value);

namespace detail {
/// A field that readers take for UTF-8: bytes that are none become U+FFFD.
void write_text(ProtoWriter& out, std::uint32_t number, std::string_view text);
/// As a part of another message.
void write_summary(ProtoWriter& out, const Summary& summary);
Summary read_summary(ProtoReader in);
}  // namespace detail

}  // namespace dflow
