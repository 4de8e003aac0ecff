#include <dflow/io/summary/summary.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/core/tensor.hpp>
#include <dflow/io/proto/proto_writer.hpp>
#include <dflow/io/summary/png.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

using namespace dflow;
using namespace std::string_view_literals;

namespace {

using Pixels = std::vector<std::uint8_t>;
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// True if the summary of a single image is the PNG file of these pixels.
bool shows(const AnyTensor& image, const Pixels& pixels) {
  const std::vector<SummaryValue> summary = image_summary("t", image);
  REQUIRE(summary.size() == 1);
  const auto& shown = std::get<SummaryImage>(summary[0].value);
  CHECK(shown.height == image.dim(0));
  CHECK(shown.width == image.dim(1));
  CHECK(shown.colorspace == image.dim(2));
  return shown.encoded == encode_png(pixels, image.dim(0), image.dim(1), image.dim(2));
}

bool shows_grey(const std::vector<float>& values, const Pixels& pixels) {
  return shows(Tensor<float>({2, 2, 1}, values), pixels);
}

Summary summary_of_each_kind() {
  Summary summary;
  summary.values.push_back(scalar_summary("scalar", 0.5));
  summary.values.push_back(histogram_summary("histogram", Tensor<float>({3}, {1, 2, 3})));
  summary.values.push_back(image_summary("image", Tensor<std::uint8_t>({1, 2, 1}, {7, 8})).front());
  summary.values.push_back(audio_summary("audio", Tensor<float>({2, 2}, {0, 0.5f, -0.5f, 1}), 8000));
  summary.values.push_back(text_summary("text", "# Title"));
  summary.values.back().display_name = "shown";
  summary.values.back().description = "described";
  summary.values.back().plugin_content = "content";
  return summary;
}

}  // namespace

TEST_CASE("a scalar and a text are the bytes that TensorFlow and TensorBoard write", "[summary]") {
  // tf.compat.v1.summary.scalar("loss", 0.5) of TensorFlow 2.21.
  CHECK(serialize(Summary{{scalar_summary("loss", 0.5)}}) == "\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f"sv);
  // summary.proto: tag, tensor{dtype 7, shape {}, string_val "x"}, metadata{plugin_data{"text"}, data_class 2}.
  CHECK(serialize(Summary{{text_summary("t", "x")}}) ==
        "\x0a\x18\x0a\x01t\x42\x07\x08\x07\x12\x00\x42\x01x\x4a\x0a\x0a\x06\x0a\x04text\x20\x02"sv);
}

TEST_CASE("a histogram is the bytes that TensorFlow writes", "[summary]") {
  // HistogramSummary of TensorFlow 2.21 of the uint8 200.
  CHECK(
      serialize(Summary{{histogram_summary("t", Tensor<std::uint8_t>(std::uint8_t{200}))}}) ==
      "\x0a\x66\x0a\x01\x74\x2a\x61\x09\x00\x00\x00\x00\x00\x00\x69\x40\x11\x00\x00\x00\x00\x00\x00\x69\x40\x19\x00\x00"
      "\x00\x00\x00\x00\xf0\x3f\x21\x00\x00\x00\x00\x00\x00\x69\x40\x29\x00\x00\x00\x00\x00\x88\xe3\x40\x32\x18\x92\xaf"
      "\x92\x93\x2a\xd8\x67\x40\x88\x27\xee\x3b\x95\x3a\x6a\x40\xff\xff\xff\xff\xff\xff\xef\x7f\x3a\x18\x00\x00\x00\x00"
      "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\x00"sv);
  const Status bad = status_of([] { return histogram_summary("layer/w", Tensor<float>(not_a_number)); });
  CHECK(bad.code() == Code::invalid_argument);
  CHECK(mentions(bad, "layer/w"));
}

// The pixels are from tf.compat.v1.summary.image of TensorFlow 2.21, decoded.
TEST_CASE("images of floats are scaled as TensorFlow does", "[summary]") {
  CHECK(shows_grey({0, 0.5f, 1, 2}, {0, 63, 127, 255}));
  CHECK(shows_grey({-1, 0.5f, 1, 2}, {64, 159, 191, 255}));
  CHECK(shows_grey({-4, 0.5f, 1, 2}, {1, 143, 159, 191}));
  CHECK(shows_grey({0, 0, 0, 0}, {0, 0, 0, 0}));
  CHECK(shows_grey({0, 1e-30f, 2e-30f, 0}, {0, 0, 0, 0}));
  CHECK(shows_grey({-1e-30f, 0, 0, 0}, {128, 128, 128, 128}));
  const Pixels ramp = {80, 96, 112, 128, 143, 159, 175, 191, 207, 223, 239, 255};
  const std::vector<float> values = {-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(shows(Tensor<float>({2, 2, 3}, values), ramp));
  CHECK(shows(Tensor<double>({2, 2, 3}, values), ramp));
  CHECK(shows(Tensor<Half>({2, 2, 3}, values), ramp));
  CHECK(shows(Tensor<BFloat16>({2, 2, 3}, values), ramp));
}

TEST_CASE("pixels that are not finite are red", "[summary]") {
  CHECK(shows_grey({0, not_a_number, 1, 2}, {0, 255, 127, 255}));
  CHECK(shows_grey({0, infinity, 1, 2}, {0, 255, 127, 255}));
  CHECK(shows_grey({0, not_a_number, -1, 2}, {128, 255, 64, 255}));
  CHECK(shows_grey({not_a_number, not_a_number, not_a_number, not_a_number}, {255, 255, 255, 255}));
  CHECK(shows(Tensor<float>({1, 2, 3}, {0, 1, not_a_number, 2, 3, 4}), {255, 0, 0, 127, 191, 255}));
  CHECK(shows(Tensor<float>({1, 2, 4}, {0, 1, not_a_number, 2, 3, 4, 1, 1}), {255, 0, 0, 255, 191, 255, 63, 63}));
}

TEST_CASE("images of bytes are shown as they are, those of a batch one by one", "[summary]") {
  CHECK(shows(Tensor<std::uint8_t>({2, 2, 1}, {0, 1, 2, 3}), {0, 1, 2, 3}));
  const Tensor<std::uint8_t> batch({3, 1, 2, 1}, {0, 1, 2, 3, 4, 5});
  const std::vector<SummaryValue> two = image_summary("img", batch, 2);
  REQUIRE(two.size() == 2);
  CHECK(two[0].tag == "img/image/0");
  CHECK(two[1].tag == "img/image/1");
  CHECK(std::get<SummaryImage>(two[1].value).encoded == encode_png(Pixels{2, 3}, 1, 2, 1));
  CHECK(image_summary("img", batch, 9).size() == 3);
  CHECK(image_summary("img", Tensor<std::uint8_t>(Shape{0, 1, 2, 1})).empty());
}

TEST_CASE("tensors that are no images are InvalidArgument that names the tag", "[summary]") {
  const auto check = [](const AnyTensor& image) {
    const Status status = status_of([&] { return image_summary("the/tag", image); });
    CHECK(status.code() == Code::invalid_argument);
    CHECK(mentions(status, "the/tag"));
  };
  check(Tensor<float>(Shape{2, 2}));
  check(Tensor<float>(Shape{2, 2, 2}));
  check(Tensor<float>(Shape{2, 2, 5}));
  check(Tensor<float>(Shape{0, 2, 1}));
  check(Tensor<float>(Shape{1, 1, 2, 2, 1}));
  check(Tensor<std::int32_t>(Shape{2, 2, 1}));
  check(AnyTensor());
}

TEST_CASE("sound is floats of frames", "[summary]") {
  const SummaryValue value = audio_summary("a", Tensor<float>({3}, {0, 1, -1}), 16000);
  const auto& audio = std::get<SummaryAudio>(value.value);
  CHECK(audio.channels == 1);
  CHECK(audio.frames == 3);
  CHECK(audio.sample_rate == 16000);
  CHECK(code_of([] { return audio_summary("a", Tensor<float>(1.0f), 1); }) == Code::invalid_argument);
  CHECK(code_of([] { return audio_summary("a", Tensor<float>(Shape{1, 1, 1}), 1); }) == Code::invalid_argument);
  CHECK(code_of([] { return audio_summary("a", Tensor<double>(Shape{1}), 1); }) == Code::invalid_argument);
  CHECK(code_of([] { return audio_summary("a", Tensor<float>(Shape{1}), 0); }) == Code::invalid_argument);
}

TEST_CASE("a summary is read as it was written", "[summary]") {
  const std::string bytes = serialize(summary_of_each_kind());
  const Summary read = parse_summary(bytes);
  CHECK(serialize(read) == bytes);
  REQUIRE(read.values.size() == 5);
  CHECK(read.values[0].tag == "scalar");
  CHECK(std::get<float>(read.values[0].value) == 0.5f);
  CHECK(std::get<Histogram>(read.values[1].value) == histogram_of(Tensor<float>({3}, {1, 2, 3})));
  CHECK(std::get<SummaryImage>(read.values[2].value).encoded == encode_png(Pixels{7, 8}, 1, 2, 1));
  CHECK(std::get<SummaryAudio>(read.values[3].value).content_type == "audio/wav");
  CHECK(std::get<AnyTensor>(read.values[4].value).as<std::string>().scalar() == "# Title");
  CHECK(read.values[4].plugin == "text");
  CHECK(read.values[4].plugin_content == "content");
  CHECK(read.values[4].display_name == "shown");
  CHECK(read.values[4].description == "described");
  CHECK(read.values[4].data_class == SummaryDataClass::tensor);
  CHECK(serialize(Summary()).empty());
}

namespace {

/// A Summary of one value: its tag "t", a TensorProto, and the name of its plugin.
std::string summary_of_tensor(std::string_view tensor, std::string_view plugin) {
  std::string bytes;
  ProtoWriter(bytes).message(1, [&](ProtoWriter& value) {
    value.bytes(1, "t");
    value.bytes(8, tensor);
    value.message(
        9, [&](ProtoWriter& metadata) { metadata.message(1, [&](ProtoWriter& data) { data.bytes(1, plugin); }); });
  });
  return bytes;
}

/// The scalar that a TensorProto is read as.
std::optional<float> scalar_of_tensor(std::string_view tensor) {
  const Summary summary = parse_summary(summary_of_tensor(tensor, "scalars"));
  REQUIRE(summary.values.size() == 1);
  CHECK(summary.values[0].plugin == "scalars");
  const float* scalar = std::get_if<float>(&summary.values[0].value);
  return scalar == nullptr ? std::nullopt : std::optional(*scalar);
}

}  // namespace

TEST_CASE("a scalar that TensorFlow 2 wrote as a tensor is read as a scalar, of every real type", "[summary]") {
  // {dtype, shape [], tensor_content}, and the fields float_val, double_val, int_val, int64_val, half_val, uint32_val.
  CHECK(scalar_of_tensor("\x08\1\x12\0\x22\4\0\0\x80\x3e"sv) == 0.25f);
  CHECK(scalar_of_tensor("\x08\1\x12\0\x2a\4\0\0\x80\x3e"sv) == 0.25f);
  CHECK(scalar_of_tensor("\x08\1\x12\0\x2d\0\0\x80\x3e"sv) == 0.25f);  // not packed
  CHECK(scalar_of_tensor("\x08\2\x12\0\x22\x08\0\0\0\0\0\0\xd0\x3f"sv) == 0.25f);
  CHECK(scalar_of_tensor("\x08\2\x12\0\x32\x08\0\0\0\0\0\0\xd0\x3f"sv) == 0.25f);
  CHECK(scalar_of_tensor("\x08\x13\x12\0\x22\2\0\x34"sv) == 0.25f);
  CHECK(scalar_of_tensor("\x08\x13\x12\0\x6a\2\x80\x68"sv) == 0.25f);
  CHECK(scalar_of_tensor("\x08\x0e\x12\0\x22\2\x80\x3e"sv) == 0.25f);
  CHECK(scalar_of_tensor("\x08\3\x12\0\x3a\1\7"sv) == 7.0f);
  CHECK(scalar_of_tensor("\x08\3\x12\0\x22\4\xff\xff\xff\xff"sv) == -1.0f);
  CHECK(scalar_of_tensor("\x08\x09\x12\0\x52\1\7"sv) == 7.0f);
  CHECK(scalar_of_tensor("\x08\4\x12\0\x3a\2\xc8\1"sv) == 200.0f);
  CHECK(scalar_of_tensor("\x08\x16\x12\0\x82\1\1\7"sv) == 7.0f);
  CHECK(scalar_of_tensor("\x08\1\x12\0"sv) == 0.0f);                                 // no value is zero
  CHECK(scalar_of_tensor("\x08\1\x12\4\x12\2\x08\1\x22\4\0\0\x80\x3e"sv) == 0.25f);  // [1]
  // Two numbers, a text, a truth value, and a complex number are no scalars.
  CHECK_FALSE(scalar_of_tensor("\x08\1\x12\4\x12\2\x08\2\x22\x08\0\0\x80\x3e\0\0\x80\x3e"sv));
  CHECK_FALSE(scalar_of_tensor("\x08\7\x12\0\x42\1\x61"sv));
  CHECK_FALSE(scalar_of_tensor("\x08\x0a\x12\0\x5a\1\1"sv));
  CHECK_FALSE(scalar_of_tensor("\x08\x08\x12\0\x4a\x08\0\0\x80\x3f\0\0\0\x40"sv));

  // Only the plugin says that a tensor is a scalar, and what was read is written and read again as it was.
  const std::string_view quarter = "\x08\1\x12\0\x22\4\0\0\x80\x3e"sv;
  CHECK(std::holds_alternative<AnyTensor>(parse_summary(summary_of_tensor(quarter, "text")).values.at(0).value));
  const Summary again = parse_summary(serialize(parse_summary(summary_of_tensor(quarter, "scalars"))));
  CHECK(std::get<float>(again.values.at(0).value) == 0.25f);
  CHECK(again.values[0].plugin == "scalars");
}

TEST_CASE("a value that dflow has no tensor for is empty, and the values beside it are read", "[summary]") {
  std::string bytes = summary_of_tensor("\x08\x14\x12\0"sv, "handles");
  bytes += summary_of_tensor(
      "\x08\1\x12\x24" +
          [] {
            std::string dims;
            for (int i = 0; i < 9; ++i) dims += "\x12\2\x08\1";
            return dims;
          }(),
      "of nine dimensions");
  bytes += summary_of_tensor("\x08\1\x12\0\x22\4\0\0\x80\x3e"sv, "scalars");
  const Summary read = parse_summary(bytes);
  REQUIRE(read.values.size() == 3);
  CHECK(std::holds_alternative<std::monostate>(read.values[0].value));
  CHECK(std::holds_alternative<std::monostate>(read.values[1].value));
  CHECK(read.values[1].plugin == "of nine dimensions");
  CHECK(std::get<float>(read.values[2].value) == 0.25f);
}

TEST_CASE("a histogram whose limits and buckets differ in number is DataLoss", "[summary]") {
  // tag "t", histo{bucket_limit [1], bucket []}.
  CHECK(code_of([] { return parse_summary("\x0a\x0f\x0a\x01t\x2a\x0a\x32\x08\x00\x00\x00\x00\x00\x00\xf0\x3f"sv); }) ==
        Code::data_loss);
}

TEST_CASE("a damaged summary is a summary or DataLoss, never more", "[summary]") {
  const std::string whole = serialize(summary_of_each_kind());
  std::vector<std::size_t> ends = {0};
  for (std::size_t i = 1; i <= 5; ++i) {
    Summary part = summary_of_each_kind();
    part.values.resize(i);
    ends.push_back(serialize(part).size());
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    const bool is_between = std::find(ends.begin(), ends.end(), size) != ends.end();
    CHECK(code_of([&] { return parse_summary(cut); }) == (is_between ? Code::ok : Code::data_loss));
  }
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const Code code = code_of([&] { return parse_summary(damaged); });
    if (code != Code::ok && code != Code::data_loss) FAIL("bit " << bit);
  }
}

TEST_CASE("texts that are no UTF-8, which no reader takes, are written as what is", "[summary]") {
  SummaryValue value = scalar_summary("a\xff/\xc3\xa4\xed\xa0\x80", 1);
  value.plugin = "p\x80";
  value.plugin_content = "c\x80";  // bytes
  value.display_name = "n\xc3";
  value.description = "d\xf5";
  const Summary read = parse_summary(serialize(Summary{{value}}));
  REQUIRE(read.values.size() == 1);
  CHECK(read.values[0].tag == "a\xef\xbf\xbd/\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(read.values[0].plugin == "p\xef\xbf\xbd");
  CHECK(read.values[0].plugin_content == "c\x80");
  CHECK(read.values[0].display_name == "n\xef\xbf\xbd");
  CHECK(read.values[0].description == "d\xef\xbf\xbd");
}

TEST_CASE("few bytes do not say of many tensors that they are large", "[summary]") {
  // tag "", tensor{dtype complex128, shape [n], nothing else}: all together have at most 2^20 elements.
  const auto tensors = [](int count, const std::string& extent) {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
      const std::string dim = "\x12" + std::string(1, static_cast<char>(extent.size() + 1)) + "\x08" + extent;
      const std::string tensor = "\x08\x12\x12" + std::string(1, static_cast<char>(dim.size())) + dim;
      const std::string value = "\x42" + std::string(1, static_cast<char>(tensor.size())) + tensor;
      bytes += "\x0a" + std::string(1, static_cast<char>(value.size())) + value;
    }
    return bytes;
  };
  const std::string all = "\x80\x80\x40", half = "\x80\x80\x20", one = "\x01";  // 2^20, 2^19, 1
  CHECK(std::get<AnyTensor>(parse_summary(tensors(1, all)).values.at(0).value).num_elements() == 1 << 20);
  CHECK(parse_summary(tensors(2, half)).values.size() == 2);
  CHECK(parse_summary(tensors(100, one)).values.size() == 100);
  CHECK(code_of([&] { return parse_summary(tensors(2, all)); }) == Code::data_loss);
  CHECK(code_of([&] { return parse_summary(tensors(3, half)); }) == Code::data_loss);
  CHECK(code_of([&] { return parse_summary(tensors(1, all) + tensors(1, one)); }) == Code::data_loss);
}
