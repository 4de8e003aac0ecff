#include <dflow/ops/summary/summary.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/io/summary/png.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

using namespace dflow;
using namespace std::string_view_literals;

// Bytes, pixels, numbers and errors are the results of tf.raw_ops of TensorFlow 2.21.0. The tags and the values of
// "tag1" to "tag3" and "taghisto" come from tests of TensorFlow (core/kernels/summary*_op_test.cc).

namespace {

constexpr float summary_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float summary_infinity = std::numeric_limits<float>::infinity();

std::string bytes_of(Graph& graph, const Output<std::string>& summary) {
  Session session(graph);
  return session.run(summary).scalar();
}

/// The bytes of a summary op of constants.
template <class O>
std::string run_summary(const std::vector<AnyTensor>& inputs, typename O::Attrs attrs = {}) {
  Graph graph;
  std::vector<AnyOutput> edges;
  for (const AnyTensor& input : inputs) edges.push_back(constant(graph, input));
  const AnyOutput summary = build<O>(std::span<const AnyOutput>(edges), std::move(attrs));
  return bytes_of(graph, Output<std::string>(summary));
}

/// The status of the same op, with shapes known only to the step.
template <class O>
Status status_of_step(const std::vector<AnyTensor>& inputs, typename O::Attrs attrs = {}) {
  Graph graph;
  std::vector<AnyOutput> edges;
  std::vector<Feed> feeds;
  for (const AnyTensor& input : inputs) {
    edges.push_back(detail::any_placeholder(*graph.store(), input.dtype(), PartialShape::unknown(), {}));
    feeds.emplace_back(edges.back(), input);
  }
  return status_of([&] {
    const AnyOutput summary = build<O>(std::span<const AnyOutput>(edges), std::move(attrs));
    Session session(graph);
    std::vector<AnyTensor> results(1);
    session.run_erased({}, nullptr, feeds, {&summary, 1}, {}, results);
  });
}

/// InvalidArgument with `message`, when the node is built and when the step runs.
template <class O>
void check_refused(const std::vector<AnyTensor>& inputs, std::string_view message, typename O::Attrs attrs = {}) {
  const Status built = status_of([&] { return run_summary<O>(inputs, attrs); });
  CHECK(built.code() == Code::invalid_argument);
  CHECK(mentions(built, message));
  const Status ran = status_of_step<O>(inputs, attrs);
  CHECK(ran.code() == Code::invalid_argument);
  CHECK(mentions(ran, message));
}

Tensor<std::string> tag_of(const char* text) { return Tensor<std::string>(std::string(text)); }

std::vector<SummaryValue> values_of(const std::string& bytes) { return parse_summary(bytes).values; }

/// Checks the pixels that each summary shows.
void check_images(const std::string& bytes, const Shape& shape, const std::vector<std::string>& tags,
                  const std::vector<std::vector<std::uint8_t>>& pixels) {
  const std::vector<SummaryValue> values = values_of(bytes);
  REQUIRE(values.size() == tags.size());
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const auto& image = std::get<SummaryImage>(values[i].value);
    CHECK(values[i].tag == tags[i]);
    CHECK(image.height == shape[0]);
    CHECK(image.width == shape[1]);
    CHECK(image.colorspace == shape[2]);
    CHECK(image.encoded == encode_png(pixels[i], shape[0], shape[1], shape[2]));
  }
}

}  // namespace

TEST_CASE("scalars of any number and type are the bytes that TensorFlow writes", "[summary]") {
  CHECK(run_summary<ScalarSummary>(
            {Tensor<std::string>({3}, {"tag1", "tag2", "tag3"}), Tensor<float>({3}, {1.0f, -0.73f, 10320.8f})}) ==
        "\x0a\x0b\x0a\x04tag1\x15\x00\x00\x80\x3f\x0a\x0b\x0a\x04tag2\x15\x48\xe1\x3a\xbf"
        "\x0a\x0b\x0a\x04tag3\x15\x33\x43\x21\x46"sv);
  CHECK(run_summary<ScalarSummary>({tag_of("a"), Tensor<BFloat16>(BFloat16(0.3f))}) ==
        "\x0a\x08\x0a\x01\x61\x15\x00\x00\x9a\x3e"sv);
  CHECK(run_summary<ScalarSummary>({tag_of("a"), Tensor<Half>(Half(0.3f))}) ==
        "\x0a\x08\x0a\x01\x61\x15\x00\xa0\x99\x3e"sv);
  CHECK(run_summary<ScalarSummary>({tag_of("a"), Tensor<std::int64_t>(std::int64_t{-7})}) ==
        "\x0a\x08\x0a\x01\x61\x15\x00\x00\xe0\xc0"sv);
  CHECK(run_summary<ScalarSummary>({tag_of("a"), Tensor<std::uint8_t>(std::uint8_t{200})}) ==
        "\x0a\x08\x0a\x01\x61\x15\x00\x00\x48\x43"sv);
  CHECK(run_summary<ScalarSummary>({tag_of("a"), Tensor<double>(1e300)}) ==
        "\x0a\x08\x0a\x01\x61\x15\x00\x00\x80\x7f"sv);
  CHECK(run_summary<ScalarSummary>({tag_of("a"), Tensor<float>(summary_nan)}) ==
        "\x0a\x08\x0a\x01\x61\x15\x00\x00\xc0\x7f"sv);
  CHECK(run_summary<ScalarSummary>({Tensor<std::string>(Shape{0}), Tensor<float>(Shape{0})}).empty());
}

TEST_CASE("tags and values of different shapes are refused, as TensorFlow does", "[summary]") {
  check_refused<ScalarSummary>({Tensor<std::string>({2}, {"tag1", "tag2"}), Tensor<float>(Shape{3})},
                               "tags and values are not the same shape: [2] != [3]");
  check_refused<ScalarSummary>({Tensor<std::string>({2}, {"tag1", "tag2"}), Tensor<float>({2, 1}, {1.0f, -0.73f})},
                               "tags and values are not the same shape: [2] != [2,1]");
  check_refused<ScalarSummary>({Tensor<std::string>({1}, {"tag1"}), Tensor<float>({2, 1}, {1.0f, -0.73f})},
                               "tags and values are not the same shape: [1] != [2,1] (tag 'tag1')");
}

TEST_CASE("a histogram of each element type is that of TensorFlow", "[summary]") {
  const std::vector<SummaryValue> values = values_of(
      run_summary<HistogramSummary>({tag_of("taghisto"), Tensor<float>({2, 3}, {0.1f, -0.7f, 4.1f, 4, 5, 4})}));
  REQUIRE(values.size() == 1);
  const auto& histogram = std::get<Histogram>(values[0].value);
  CHECK(values[0].tag == "taghisto");
  CHECK(histogram.min == -0.699999988079071);
  CHECK(histogram.max == 5);
  CHECK(histogram.count == 6);
  CHECK(histogram.sum == 16.499999918043613);
  CHECK(histogram.sum_squares == 74.30999920159579);
  CHECK(histogram.limits == std::vector<double>{-0.7580548669750213, -0.6891407881591103, 0.09312398815580714,
                                                0.10243638697138786, 3.8315657995195243, 4.214722379471477,
                                                4.636194617418625, 5.099814079160488, 1.7976931348623157e+308});
  CHECK(histogram.counts == std::vector<double>{0, 1, 0, 1, 0, 3, 0, 1, 0});
  // The values are 1 and 2, then the int8 1 and -2.
  constexpr auto two =
      "\x0a\x87\x01\x0a\x01\x74\x2a\x81\x01\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x11\x00\x00\x00\x00\x00\x00\x00\x40\x19"
      "\x00\x00\x00\x00\x00\x00\x00\x40\x21\x00\x00\x00\x00\x00\x00\x08\x40\x29\x00\x00\x00\x00\x00\x00\x14\x40\x32\x28"
      "\x08\x99\x69\x19\x15\x5a\xed\x3f\x2b\x14\xfa\xcd\xbe\x24\xf0\x3f\xdc\x94\xcd\x2e\x8d\x75\xff\x3f\xe0\x11\xf1\x0c"
      "\x74\x4d\x01\x40\xff\xff\xff\xff\xff\xff\xef\x7f\x3a\x28\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
      "\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\x00"sv;
  CHECK(run_summary<HistogramSummary>({tag_of("t"), Tensor<Half>({2}, std::vector<float>{1, 2})}) == two);
  CHECK(run_summary<HistogramSummary>({tag_of("t"), Tensor<BFloat16>({2}, std::vector<float>{1, 2})}) == two);
  CHECK(run_summary<HistogramSummary>({tag_of("t"), Tensor<std::uint64_t>({2}, {1, 2})}) == two);
  CHECK(std::get<Histogram>(
            values_of(run_summary<HistogramSummary>({tag_of("t"), Tensor<std::int8_t>({2}, {1, -2})}))[0].value)
            .limits == std::vector<double>{-2.1628190051144287, -1.9661990955585713, 0.917246389039776,
                                           1.0089710279437536, 1.7976931348623157e+308});
}

TEST_CASE("a histogram of what is not finite is an error that names the tag", "[summary]") {
  for (const float value : {summary_nan, summary_infinity, -summary_infinity}) {
    const Status status = status_of_step<HistogramSummary>({tag_of("taghisto"), Tensor<float>({2}, {0.1f, value})});
    CHECK(status.code() == Code::invalid_argument);
    CHECK(mentions(status, "taghisto"));
  }
  check_refused<HistogramSummary>({Tensor<std::string>({1}, {"a"}), Tensor<float>(0.1f)}, "the tag must be a scalar");
}

TEST_CASE("images are scaled as TensorFlow does, each by itself", "[summary]") {
  check_images(
      run_summary<ImageSummary>({tag_of("tag"), Tensor<float>({1, 2, 3, 1}, {-10, 127, summary_nan, 1e-8f, 0, 255})}),
      {2, 3, 1}, {"tag/image/0"}, {{123, 191, 255, 128, 128, 255}});
  const std::vector<float> ramp = {0, 1, 2, summary_nan, 4, 5, 6, 7, 8, 9, 10, 11};
  const Shape shape{2, 1, 2, 3}, one{1, 2, 3};
  const std::vector<std::string> tags = {"tag/image/0", "tag/image/1"};
  check_images(run_summary<ImageSummary>({tag_of("tag"), Tensor<float>(shape, ramp)}), one, tags,
               {{0, 127, 255, 255, 0, 0}, {139, 162, 185, 208, 231, 255}});
  check_images(run_summary<ImageSummary>({tag_of("tag"), Tensor<Half>(shape, ramp)}), one, tags,
               {{0, 127, 255, 255, 0, 0}, {139, 162, 185, 208, 231, 255}});
  // For double, TensorFlow has 254 for 11 * (255 / 11), which IEEE 754 puts above 255.
  check_images(run_summary<ImageSummary>({tag_of("tag"), Tensor<double>(shape, ramp)}), one, tags,
               {{0, 127, 255, 255, 0, 0}, {139, 162, 185, 208, 231, 255}});
  const Tensor<std::uint8_t> bytes(shape, {0, 1, 2, 0, 4, 5, 6, 7, 8, 9, 10, 11});
  check_images(run_summary<ImageSummary>({tag_of("tag"), bytes}), one, tags,
               {{0, 1, 2, 0, 4, 5}, {6, 7, 8, 9, 10, 11}});
  check_images(run_summary<ImageSummary>({tag_of("tag"), bytes}, {.max_images = 1}), one, {"tag/image"},
               {{0, 1, 2, 0, 4, 5}});
  CHECK(run_summary<ImageSummary>({tag_of("tag"), Tensor<float>(Shape{0, 1, 2, 3})}).empty());
}

TEST_CASE("pixels that are not finite have the colour that the attribute says", "[summary]") {
  const Tensor<float> image({1, 1, 2, 3}, {0, 1, 2, summary_nan, 4, 5});
  check_images(run_summary<ImageSummary>({tag_of("tag"), image}, {.bad_color = Tensor<std::uint8_t>({3}, {1, 2, 3})}),
               {1, 2, 3}, {"tag/image/0"}, {{0, 127, 255, 1, 2, 3}});
  const auto refused = [&](const AnyTensor& color, std::string_view message) {
    check_refused<ImageSummary>({tag_of("tag"), image}, message, {.bad_color = color});
  };
  refused(Tensor<std::uint8_t>({2}, {1, 2}), "bad_color has 2 of 3 channels");
  refused(Tensor<std::uint8_t>({1, 3}, {1, 2, 3}), "bad_color must be a vector, not [1,3]");
  refused(Tensor<std::int32_t>({3}, {1, 2, 3}), "bad_color must be uint8, not int32");
}

TEST_CASE("tensors that are no images are refused", "[summary]") {
  check_refused<ImageSummary>({tag_of("tag"), Tensor<float>(Shape{1, 2, 3})}, "4-D with last dim 1, 3, or 4");
  check_refused<ImageSummary>({tag_of("tag"), Tensor<float>(Shape{1, 1, 2, 2})}, "4-D with last dim 1, 3, or 4");
  check_refused<ImageSummary>({tag_of("tag"), Tensor<float>(Shape{1, 0, 2, 3})}, "tag");
  check_refused<ImageSummary>({Tensor<std::string>({1}, {"tag"}), Tensor<float>(Shape{1, 1, 2, 3})},
                              "the tag must be a scalar");
  check_refused<ImageSummary>({tag_of("tag"), Tensor<float>(Shape{1, 1, 2, 3})}, "max_images", {.max_images = 0});
  check_refused<ImageSummary>({tag_of("tag"), Tensor<float>(Shape{1, 1, 2, 3})}, "max_images",
                              {.max_images = std::int64_t{1} << 32});
}

TEST_CASE("sounds are the bytes that TensorFlow writes", "[summary]") {
  const Tensor<float> two({2, 4}, {0, 0.5f, -1, 1, 0.1f, 0.2f, 0.3f, 2});
  constexpr auto first =
      "\x0a\x59\x0a\x0bsnd/audio/0\x32\x4a\x0d\x00\x44\x2c\x47\x10\x01\x18\x04\x22\x34RIFF\x2c\x00\x00\x00WAVEfmt "
      "\x10\x00\x00\x00\x01\x00\x01\x00\x44\xac\x00\x00\x88\x58\x01\x00\x02\x00\x10\x00"
      "data\x08\x00\x00\x00\x00\x00\x00\x40\x00\x80\xff\x7f\x2a\x09"
      "audio/wav"sv;
  constexpr auto second =
      "\x0a\x59\x0a\x0bsnd/audio/1\x32\x4a\x0d\x00\x44\x2c\x47\x10\x01\x18\x04\x22\x34RIFF\x2c\x00\x00\x00WAVEfmt "
      "\x10\x00\x00\x00\x01\x00\x01\x00\x44\xac\x00\x00\x88\x58\x01\x00\x02\x00\x10\x00"
      "data\x08\x00\x00\x00\xcd\x0c\x9a\x19\x66\x26\xff\x7f\x2a\x09"
      "audio/wav"sv;
  const std::string bytes = run_summary<AudioSummaryV2>({tag_of("snd"), two, Tensor<float>(44100.0f)});
  CHECK(bytes == std::string(first) + std::string(second));
  const auto one =
      values_of(run_summary<AudioSummaryV2>({tag_of("snd"), two, Tensor<float>(8000.7f)}, {.max_outputs = 1}));
  REQUIRE(one.size() == 1);
  CHECK(one[0].tag == "snd/audio");
  const auto& audio = std::get<SummaryAudio>(one[0].value);
  CHECK(audio.sample_rate == 8000.7001953125f);
  CHECK(audio.encoded.substr(24, 4) == "\x41\x1f\x00\x00"sv);  // 8001
  const auto stereo = values_of(run_summary<AudioSummaryV2>(
      {tag_of("snd"), Tensor<float>({1, 2, 2}, {0, 0.5f, -1, 1}), Tensor<float>(44100.0f)}));
  CHECK(std::get<SummaryAudio>(stereo[0].value).channels == 2);
  CHECK(std::get<SummaryAudio>(stereo[0].value).frames == 2);
}

TEST_CASE("what is no sound is refused", "[summary]") {
  const Tensor<float> sound({1, 2}, {0, 1}), rate(8000.0f);
  check_refused<AudioSummaryV2>({tag_of("s"), Tensor<float>({2}, {0, 1}), rate}, "sound must be 3-D or 2-D, not [2]");
  check_refused<AudioSummaryV2>({tag_of("s"), sound, Tensor<float>(0.0f)}, "sample_rate must be > 0");
  check_refused<AudioSummaryV2>({tag_of("s"), sound, Tensor<float>(summary_nan)}, "sample_rate must be > 0");
  check_refused<AudioSummaryV2>({tag_of("s"), sound, Tensor<float>(summary_infinity)}, "sample_rate must be > 0");
  check_refused<AudioSummaryV2>({tag_of("s"), sound, Tensor<float>(0.2f)}, "no WAV file has");
  check_refused<AudioSummaryV2>({tag_of("s"), sound, Tensor<float>({1}, {8000})}, "sample_rate must be a scalar");
  check_refused<AudioSummaryV2>({Tensor<std::string>({1}, {"s"}), sound, rate}, "the tag must be a scalar");
  check_refused<AudioSummaryV2>({tag_of("s"), sound, rate}, "max_outputs", {.max_outputs = 0});
}

TEST_CASE("a tensor with what a plugin is told is the bytes that TensorFlow writes", "[summary]") {
  SummaryValue shown;
  shown.plugin = "text";
  shown.display_name = "d";
  shown.description = "desc";
  const std::string metadata = serialize_metadata(shown);
  CHECK(metadata == "\x0a\x06\x0a\x04text\x12\x01\x64\x1a\x04\x64\x65sc"sv);
  CHECK(
      run_summary<TensorSummaryV2>({tag_of("txt"), tag_of("hello"), Tensor<std::string>(metadata)}) ==
      "\x0a\x25\x0a\x03txt\x42\x0b\x08\x07\x12\x00\x42\x05hello\x4a\x11\x0a\x06\x0a\x04text\x12\x01\x64\x1a\x04\x64\x65sc"sv);
  const auto plain =
      values_of(run_summary<TensorSummaryV2>({tag_of("txt"), Tensor<float>({2, 2}, {1, 2, 3, 4}), tag_of("")}));
  REQUIRE(plain.size() == 1);
  const Tensor<float> read = std::get<AnyTensor>(plain[0].value).as<float>();
  CHECK(read.shape() == Shape{2, 2});
  CHECK(read(1, 0) == 3);
  const Status bad = status_of_step<TensorSummaryV2>({tag_of("txt"), Tensor<float>(1.0f), tag_of("\xff\xff")});
  CHECK(bad.code() == Code::invalid_argument);
  CHECK(mentions(bad, "the metadata of tag 'txt'"));
}

TEST_CASE("summaries are merged in their order, and a tag that is there twice is an error", "[summary]") {
  const std::string ab = run_summary<ScalarSummary>({Tensor<std::string>({2}, {"a", "b"}), Tensor<float>({2}, {1, 2})});
  const std::string c = run_summary<ScalarSummary>({tag_of("c"), Tensor<float>(3.0f)});
  const Tensor<std::string> first(ab), second(c);
  CHECK(run_summary<MergeSummary>({first, second}, {.N = 2}) == ab + c);
  CHECK(run_summary<MergeSummary>({Tensor<std::string>({2}, {ab, c})}) == ab + c);
  const Status twice = status_of_step<MergeSummary>({first, first}, {.N = 2});
  CHECK(twice.code() == Code::invalid_argument);
  CHECK(mentions(twice, "duplicate tag 'a' found in summary inputs"));
  const Status bad = status_of_step<MergeSummary>({first, tag_of("\xff\xff")}, {.N = 2});
  CHECK(bad.code() == Code::invalid_argument);
  CHECK(mentions(bad, "input 1 is no summary"));
}

TEST_CASE("damaged summaries are merged, or InvalidArgument, never more", "[summary]") {
  Graph graph;
  const auto bytes = placeholder<std::string>(graph, {});
  const auto merged = merge_summaries({bytes});
  Session session(graph);
  const std::string whole = serialize(Summary{{scalar_summary("a", 1), text_summary("b", "text")}});
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    std::string result = damaged;
    const Status status = status_of([&] {
      result = session.run({{bytes, Tensor<std::string>(damaged)}}, merged).scalar();
    });
    CHECK(result == damaged);
    if (status.code() != Code::ok && status.code() != Code::invalid_argument) FAIL("bit " << bit);
    const Tensor<std::string> cut(whole.substr(0, bit / 8));
    const Code code = code_of([&] { return session.run({{bytes, cut}}, merged); });
    if (code != Code::ok && code != Code::invalid_argument) FAIL("cut after " << bit / 8);
  }
}

TEST_CASE("builders put summaries into the graph's collection, and all are merged", "[summary]") {
  Graph graph;
  CHECK_FALSE(has_summaries(*graph.store()));
  CHECK(code_of([&] { return merge_all_summaries(graph); }) == Code::invalid_argument);
  const auto x = placeholder<float>(graph, {});
  const auto image = constant(graph, Tensor<std::uint8_t>({1, 1, 1, 1}, {7}));
  scalar_summary("loss", x * 2.0f);
  histogram_summary("h", x);
  image_summary("i", image, {.max_images = 1});
  audio_summary("s", constant(graph, Tensor<float>({1, 2}, {0, 1})), 8000.0f, {.max_outputs = 1});
  text_summary("t", constant(graph, "# Title"));
  tensor_summary("v", x);
  CHECK(has_summaries(*graph.store()));
  CHECK(graph.collection(summaries_collection).size() == 6);
  const auto all = merge_all_summaries(graph);
  CHECK(all.shape() == PartialShape(Shape{}));
  Session session(graph);
  const std::vector<SummaryValue> values = values_of(session.run({{x, 0.25f}}, all).scalar());
  REQUIRE(values.size() == 6);
  CHECK(values[0].tag == "loss");
  CHECK(std::get<float>(values[0].value) == 0.5f);
  CHECK(values[2].tag == "i/image");
  CHECK(values[3].tag == "s/audio");
  CHECK(std::get<AnyTensor>(values[4].value).as<std::string>().scalar() == "# Title");
  CHECK(values[4].plugin == "text");
  CHECK(serialize(Summary{{values[4]}}) == serialize(Summary{{text_summary("t", "# Title")}}));
  const auto some = merge_summaries({scalar_summary("x", x)});
  CHECK(values_of(session.run({{x, 3.0f}}, some).scalar()).size() == 1);
}

TEST_CASE("a summary says nothing of gradients", "[summary]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = x * x;
  scalar_summary("y", y);
  const auto dx = gradients(y, x);
  Session session(graph);
  CHECK(session.run({{x, 3.0f}}, dx).scalar() == 6.0f);
}
