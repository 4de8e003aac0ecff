#include <dflow/image/image.hpp>
#include <dflow/image/png.hpp>

#include <dflow/ops/ops.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace df = dflow;

namespace {

template <class T>
df::Tensor<T> scattered(std::int64_t height, std::int64_t width, std::int64_t channels) {
  df::Tensor<T> image(df::Shape{height, width, channels});
  for (std::int64_t i = 0; i < image.num_elements(); ++i) image.data()[i] = static_cast<T>(i * 40503 + 77);
  return image;
}

std::string png_refusal(std::string_view contents, const df::DecodePng::Attrs& attrs = {}) {
  return error_of([&] { return df::image::decode_png(contents, attrs); });
}

}  // namespace

TEST_CASE("a PNG holds its image", "[image]") {
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    const auto bytes = scattered<std::uint8_t>(5, 7, channels);
    const auto words = scattered<std::uint16_t>(5, 7, channels);
    for (const std::int64_t compression : {-1, 0, 9}) {
      const std::string of_bytes = df::image::encode_png(bytes, {.compression = compression});
      const std::string of_words = df::image::encode_png(words, {.compression = compression});
      CHECK(bitwise_equal(df::image::decode_png(of_bytes), bytes));
      CHECK(bitwise_equal(df::image::decode_png<std::uint16_t>(of_words), words));
    }
  }
}

TEST_CASE("samples of a PNG become wider and narrower", "[image]") {
  const df::Tensor<std::uint8_t> bytes({1, 3, 1}, {0, 18, 255});
  const auto wide = df::image::decode_png<std::uint16_t>(df::image::encode_png(bytes));
  CHECK(bitwise_equal(wide, df::Tensor<std::uint16_t>({1, 3, 1}, {0, 0x1212, 0xffff})));
  const df::Tensor<std::uint16_t> words({1, 3, 1}, {0x00ff, 0x1234, 0xffff});
  const auto narrow = df::image::decode_png(df::image::encode_png(words));
  CHECK(bitwise_equal(narrow, df::Tensor<std::uint8_t>({1, 3, 1}, {0, 0x12, 0xff})));
}

TEST_CASE("a PNG is decoded to the channels that are asked for", "[image]") {
  const df::Tensor<std::uint8_t> grey({1, 2, 1}, {3, 200});
  const std::string file = df::image::encode_png(grey);
  CHECK(bitwise_equal(df::image::decode_png(file, {.channels = 2}),
                      df::Tensor<std::uint8_t>({1, 2, 2}, {3, 255, 200, 255})));
  CHECK(bitwise_equal(df::image::decode_png(file, {.channels = 3}),
                      df::Tensor<std::uint8_t>({1, 2, 3}, {3, 3, 3, 200, 200, 200})));
  CHECK(bitwise_equal(df::image::decode_png<std::uint16_t>(file, {.channels = 4}),
                      df::Tensor<std::uint16_t>({1, 2, 4}, {771, 771, 771, 65535, 51400, 51400, 51400, 65535})));
  const std::string clear = df::image::encode_png(df::Tensor<std::uint8_t>({1, 1, 4}, {50, 50, 50, 9}));
  CHECK(
      bitwise_equal(df::image::decode_png(clear, {.channels = 3}), df::Tensor<std::uint8_t>({1, 1, 3}, {50, 50, 50})));
  CHECK(bitwise_equal(df::image::decode_png(clear, {.channels = 2}), df::Tensor<std::uint8_t>({1, 1, 2}, {50, 9})));
}

TEST_CASE("a PNG that is cut or changed is refused, and memory is limited", "[image]") {
  const std::string file = df::image::encode_png(scattered<std::uint8_t>(9, 8, 3));
  CHECK(contains(png_refusal(""), "it ends early"));
  CHECK(png_refusal("\xff\xd8\xff\xe0 a JPEG") != "no error");
  for (std::size_t size = 0; size < file.size(); ++size) CHECK(png_refusal(file.substr(0, size)) != "no error");
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    if (at < 33 || (at >= 41 && at < file.size() - 16)) CHECK(png_refusal(changed) != "no error");
  }
  CHECK(contains(png_refusal(file, {.max_bytes = 215}), "max_bytes is 215"));
  CHECK(df::image::decode_png(file, {.max_bytes = 216}).num_elements() == 216);
}

TEST_CASE("attributes of a PNG are checked", "[image]") {
  CHECK(contains(png_refusal("", {.channels = 5}), "channels is 5"));
  CHECK(contains(png_refusal("", {.channels = -1}), "channels is -1"));
  CHECK(contains(png_refusal("", {.max_bytes = -1}), "max_bytes is -1"));
  const auto refusal = [](const df::Tensor<std::uint8_t>& of, std::int64_t compression = -1) {
    return error_of([&] { return df::image::encode_png(of, {.compression = compression}); });
  };
  CHECK(contains(refusal(scattered<std::uint8_t>(2, 2, 3), 10), "compression is 10"));
  CHECK(contains(refusal(scattered<std::uint8_t>(2, 2, 5)), "5 channels"));
  CHECK(contains(refusal(scattered<std::uint8_t>(2, 0, 3)), "cannot be a PNG"));
  CHECK(contains(refusal(df::Tensor<std::uint8_t>({2, 2}, {0, 0, 0, 0})), "not [2,2]"));
}

TEST_CASE("PNGs and either kind are decoded in a graph", "[image]") {
  df::Graph graph;
  auto contents = df::placeholder<std::string>(graph, {});
  auto words = df::image::decode_png<std::uint16_t>(contents);
  auto grey = df::image::decode_image<float>(contents, {.channels = 1});
  auto again = df::image::encode_png(words);
  CHECK(words.shape() == df::PartialShape{df::dynamic, df::dynamic, df::dynamic});
  df::Session session(graph, {.ops = df::standard_ops + df::image_ops});
  const auto image = scattered<std::uint16_t>(3, 4, 1);
  const std::string file = df::image::encode_png(image);
  auto [decoded, scaled, encoded] = session.run({{contents, file}}, words, grey, again);
  CHECK(bitwise_equal(decoded, image));
  CHECK(encoded.scalar() == file);
  CHECK(scaled(0, 1, 0) == static_cast<float>(image(0, 1, 0)) * (1.0f / 65535));
  const std::string jpeg = df::image::encode_jpeg(scattered<std::uint8_t>(2, 3, 1));
  CHECK(session.run({{contents, jpeg}}, grey).shape() == df::Shape{2, 3, 1});
  const df::Status status = status_of([&] { return session.run({{contents, jpeg}}, words); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.op() == "DecodePng");
  CHECK(mentions(status_of([&] { return session.run({{contents, "no image"}}, grey); }), "neither a JPEG nor a PNG"));
  CHECK(contains(error_of([&] { return df::image::decode_image(contents, {.channels = 5}); }), "channels is 5"));
}
