#include <dflow/image/image.hpp>
#include <dflow/image/jpeg.hpp>

#include <dflow/ops/ops.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace df = dflow;

namespace {

/// Smooth stripes of two directions.
df::Tensor<std::uint8_t> striped(std::int64_t height, std::int64_t width, std::int64_t channels) {
  df::Tensor<std::uint8_t> image(df::Shape{height, width, channels});
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < channels; ++c) image(y, x, c) = static_cast<std::uint8_t>(4 * y + 3 * x + 40 * c);
    }
  }
  return image;
}

int most_apart(const df::Tensor<std::uint8_t>& a, const df::Tensor<std::uint8_t>& b) {
  REQUIRE(a.shape() == b.shape());
  int most = 0;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) most = std::max(most, std::abs(a.data()[i] - b.data()[i]));
  return most;
}

std::string jpeg_refusal(std::string_view contents, const df::DecodeJpeg::Attrs& attrs = {}) {
  return error_of([&] { return df::image::decode_jpeg(contents, attrs); });
}

}  // namespace

TEST_CASE("a JPEG of high quality is close to its image", "[image]") {
  for (const std::int64_t channels : {1, 3}) {
    const auto image = striped(21, 17, channels);
    for (const bool is_progressive : {false, true}) {
      const std::string file = df::image::encode_jpeg(
          image, {.quality = 100, .progressive = is_progressive, .optimize_size = true, .chroma_downsampling = false});
      CHECK(most_apart(df::image::decode_jpeg(file, {.dct_method = "INTEGER_ACCURATE"}), image) <= 4);
    }
  }
}

TEST_CASE("a JPEG is decoded to the channels and the size that are asked for", "[image]") {
  const std::string file = df::image::encode_jpeg(striped(21, 17, 3));
  CHECK(df::image::decode_jpeg(file).shape() == df::Shape{21, 17, 3});
  CHECK(df::image::decode_jpeg(file, {.channels = 1}).shape() == df::Shape{21, 17, 1});
  CHECK(df::image::decode_jpeg(file, {.ratio = 2}).shape() == df::Shape{11, 9, 3});
  CHECK(df::image::decode_jpeg(file, {.ratio = 8}).shape() == df::Shape{3, 3, 3});
  const std::string grey = df::image::encode_jpeg(striped(5, 4, 1), {.format = "grayscale"});
  CHECK(df::image::decode_jpeg(grey).shape() == df::Shape{5, 4, 1});
  CHECK(df::image::decode_jpeg(grey, {.channels = 3}).shape() == df::Shape{5, 4, 3});
}

TEST_CASE("a JPEG says its density and its metadata", "[image]") {
  const auto image = striped(4, 4, 3);
  const std::string file =
      df::image::encode_jpeg(image, {.density_unit = "cm", .x_density = 258, .y_density = 7, .xmp_metadata = "<x/>"});
  CHECK(file.substr(6, 5) == std::string("JFIF\0", 5));
  CHECK(file.substr(13, 5) == std::string("\x02\x01\x02\x00\x07", 5));
  CHECK(contains(file, std::string("http://ns.adobe.com/xap/1.0/\0<x/>", 33)));
  CHECK(most_apart(df::image::decode_jpeg(file), df::image::decode_jpeg(df::image::encode_jpeg(image))) == 0);
  CHECK(df::image::encode_jpeg(image, {.quality = 10}).size() < df::image::encode_jpeg(image).size());
}

TEST_CASE("a cut JPEG is refused, or decoded as far as it goes", "[image]") {
  const auto image = striped(64, 16, 1);
  const std::string whole = df::image::encode_jpeg(image), cut = whole.substr(0, whole.size() * 3 / 4);
  for (std::size_t size = 0; size < whole.size(); size += 7) CHECK(jpeg_refusal(whole.substr(0, size)) != "no error");
  const auto recovered = df::image::decode_jpeg(cut, {.try_recover_truncated = true});
  CHECK(recovered.shape() == image.shape());
  CHECK(most_apart(df::Tensor<std::uint8_t>(recovered.slice(0, 8)),
                   df::Tensor<std::uint8_t>(df::image::decode_jpeg(whole).slice(0, 8))) == 0);
}

TEST_CASE("files that are no JPEG are refused, and memory is limited", "[image]") {
  CHECK(contains(jpeg_refusal(""), "it is empty"));
  CHECK(contains(jpeg_refusal("GIF89a.."), "Not a JPEG file"));
  const std::string file = df::image::encode_jpeg(striped(8, 8, 3));
  CHECK(contains(jpeg_refusal(file, {.max_bytes = 191}), "max_bytes is 191"));
  CHECK(df::image::decode_jpeg(file, {.max_bytes = 192}).num_elements() == 192);
  std::string huge = file;
  huge.replace(huge.find("\xff\xc0") + 5, 4, "\xff\x00\xff\x00", 4);
  CHECK(contains(jpeg_refusal(huge), "a JPEG of 65280 by 65280 pixels is too large"));
  std::string progressive = df::image::encode_jpeg(striped(8, 8, 3), {.progressive = true});
  progressive.replace(progressive.find("\xff\xc2") + 5, 4, "\x40\x00\x40\x00", 4);
  CHECK(jpeg_refusal(progressive, {.ratio = 8, .max_bytes = 16 << 20}) != "no error");  // needs 768 MB of coefficients
}

TEST_CASE("attributes of a JPEG are checked", "[image]") {
  const auto image = striped(8, 8, 3);
  CHECK(contains(jpeg_refusal("", {.channels = 4}), "channels is 4"));
  CHECK(contains(jpeg_refusal("", {.ratio = 3}), "ratio is 3"));
  CHECK(contains(jpeg_refusal("", {.dct_method = "FLOAT"}), "dct_method is 'FLOAT'"));
  CHECK(contains(jpeg_refusal("", {.max_bytes = 0}), "max_bytes is 0"));
  const auto refusal = [&](const df::Tensor<std::uint8_t>& of, const df::EncodeJpeg::Attrs& attrs) {
    return error_of([&] { return df::image::encode_jpeg(of, attrs); });
  };
  CHECK(contains(refusal(image, {.format = "cmyk"}), "format is 'cmyk'"));
  CHECK(contains(refusal(image, {.format = "grayscale"}), "this JPEG takes 1"));
  CHECK(contains(refusal(image, {.quality = 101}), "quality is 101"));
  CHECK(contains(refusal(image, {.density_unit = "m"}), "density_unit is 'm'"));
  CHECK(contains(refusal(image, {.x_density = 65536}), "density is 65536"));
  CHECK(contains(refusal(image, {.xmp_metadata = std::string(65505, 'x')}), "it may have 65504"));
  CHECK(refusal(image, {.xmp_metadata = std::string(65504, 'x')}) == "no error");
  CHECK(contains(refusal(striped(2, 2, 4), {}), "an image has 4 channels: this JPEG takes 1 or 3"));
  CHECK(contains(refusal(striped(0, 2, 3), {}), "cannot be a JPEG"));
  CHECK(contains(refusal(df::Tensor<std::uint8_t>({2, 2}, {0, 0, 0, 0}), {}), "not [2,2]"));
}

TEST_CASE("JPEGs are decoded and encoded in a graph", "[image]") {
  df::Graph graph;
  auto contents = df::placeholder<std::string>(graph, {});
  auto pixels = df::image::decode_jpeg(contents, {.channels = 3});
  auto again = df::image::encode_jpeg(pixels, {.quality = 90});
  CHECK(pixels.shape() == df::PartialShape{df::dynamic, df::dynamic, 3});
  CHECK(again.shape() == df::PartialShape(df::Shape()));
  df::Session session(graph, {.ops = df::standard_ops + df::image_ops});
  const auto image = striped(9, 12, 3);
  const std::string file = df::image::encode_jpeg(image);
  auto [decoded, encoded] = session.run({{contents, file}}, pixels, again);
  CHECK(most_apart(decoded, df::image::decode_jpeg(file)) == 0);
  CHECK(encoded.scalar() == df::image::encode_jpeg(decoded, {.quality = 90}));
  const df::Status status = status_of([&] { return session.run({{contents, "no image"}}, pixels); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.op() == "DecodeJpeg");
  CHECK(status.where().line() > 0);
  auto texts = df::placeholder<std::string>(graph, {2});
  CHECK(contains(error_of([&] { return df::image::decode_jpeg(texts); }), "must have rank 0"));
  CHECK(contains(error_of([&] { return df::image::decode_jpeg(contents, {.ratio = 3}); }), "ratio is 3"));
  auto four = df::placeholder<std::uint8_t>(graph, {df::dynamic, df::dynamic, 4});
  CHECK(contains(error_of([&] { return df::image::encode_jpeg(four); }), "4 channels"));
  auto any = df::placeholder<std::string>(graph, df::PartialShape::unknown());
  auto of_any = df::image::decode_jpeg(any);
  CHECK(contains(error_of([&] {
                   return session.run({{any, df::Tensor<std::string>({1}, {"x"})}}, of_any);
                 }),
                 "scalar"));
}
