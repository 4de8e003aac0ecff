#include <dflow/io/summary/wav.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

using namespace dflow;
using namespace std::string_view_literals;

TEST_CASE("a WAV file is the bytes that TensorFlow writes", "[wav]") {
  // tf.audio.encode_wav of TensorFlow 2.21.
  const std::vector<float> samples = {0, 1, -1, 0.5f, 2, -2, 0.1f, -0.1f, 1.0f / 65536, 3.0f / 65536};
  CHECK(encode_wav(samples, 2, 8000) ==
        "RIFF\x38\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0\x40\x1f\0\0\x00\x7d\0\0\x04\0\x10\0"
        "data\x14\0\0\0\0\0\xff\x7f\x00\x80\x00\x40\xff\x7f\x00\x80\xcd\x0c\x33\xf3\x01\0\x02\0"sv);
  const std::vector<float> nan = {std::numeric_limits<float>::quiet_NaN()};
  CHECK(encode_wav(nan, 1, 8000).ends_with("data\x02\0\0\0\0\0"sv));
  CHECK(encode_wav({}, 1, 8000).size() == 44);
}

TEST_CASE("sound that a WAV file cannot be is InvalidArgument", "[wav]") {
  const std::vector<float> samples(3);
  const auto code = [&](std::int64_t channels, std::int64_t rate) {
    return code_of([&] { return encode_wav(samples, channels, rate); });
  };
  CHECK(code(3, 1) == Code::ok);
  CHECK(code(2, 1) == Code::invalid_argument);
  CHECK(code(0, 1) == Code::invalid_argument);
  CHECK(code(-1, 1) == Code::invalid_argument);
  CHECK(code(1 << 16, 1) == Code::invalid_argument);
  CHECK(code(1, 0) == Code::invalid_argument);
  CHECK(code(1, std::int64_t{1} << 32) == Code::invalid_argument);
  CHECK(code(3, 0xffffffff) == Code::invalid_argument);
}
