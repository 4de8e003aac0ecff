#include <dflow/ops/parsing/decode_raw.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <complex>
#include <cstdint>
#include <string>

using namespace dflow;
using namespace std::string_literals;

// Every value was computed by tf.raw_ops.DecodeRaw of TensorFlow 2.21.0.

namespace {

template <class T>
Tensor<T> decoded(const Tensor<std::string>& bytes, bool little_endian = true) {
  Graph graph;
  const auto fed = placeholder<std::string>(graph, PartialShape(bytes.shape()));
  const auto numbers = decode_raw<T>(fed, {.little_endian = little_endian});
  CHECK(numbers.shape() == PartialShape(bytes.shape()).inserted(bytes.rank(), dynamic));
  Session session(graph);
  return session.run({{fed, bytes}}, numbers);
}

/// 1 as a number of T, from its bytes in either order.
template <class T>
bool reads_one(const std::string& bytes) {
  const std::string reversed(bytes.rbegin(), bytes.rend());
  const Tensor<T> one({1}, {T(1)});
  return bitwise_equal(decoded<T>(bytes), one) && bitwise_equal(decoded<T>(reversed, false), one);
}

}  // namespace

TEST_CASE("bytes are numbers of every type", "[parsing]") {
  CHECK(reads_one<float>("\0\0\x80\x3f"s));
  CHECK(reads_one<double>("\0\0\0\0\0\0\xf0\x3f"s));
  CHECK(reads_one<Half>("\0\x3c"s));
  CHECK(reads_one<BFloat16>("\x80\x3f"s));
  CHECK(reads_one<std::int8_t>("\1"s));
  CHECK(reads_one<std::int16_t>("\1\0"s));
  CHECK(reads_one<std::int32_t>("\1\0\0\0"s));
  CHECK(reads_one<std::int64_t>("\1\0\0\0\0\0\0\0"s));
  CHECK(reads_one<std::uint8_t>("\1"s));
  CHECK(reads_one<std::uint16_t>("\1\0"s));
  CHECK(bitwise_equal(decoded<bool>("\0\1\2\xff"s), Tensor<bool>({4}, {false, true, true, true})));
  CHECK(bitwise_equal(decoded<std::complex<float>>("\x3f\x80\0\0\x40\0\0\0"s, false),
                      Tensor<std::complex<float>>({1}, {{1, 2}})));
  CHECK(bitwise_equal(decoded<std::complex<double>>("\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40"s),
                      Tensor<std::complex<double>>({1}, {{1, 2}})));
}

TEST_CASE("bytes of a batch become rows", "[parsing]") {
  CHECK(bitwise_equal(decoded<std::int16_t>(Tensor<std::string>({2}, {"\1\2\3\4"s, "\5\6\7\x08"s})),
                      Tensor<std::int16_t>({2, 2}, {513, 1027, 1541, 2055})));
  CHECK(bitwise_equal(decoded<std::int16_t>(Tensor<std::string>({1}, {"\1\2\3\4"s}), false),
                      Tensor<std::int16_t>({1, 2}, {258, 772})));
  CHECK(decoded<std::int8_t>(Tensor<std::string>({2, 1}, {"\1"s, "\2"s})).shape() == Shape{2, 1, 1});
  CHECK(decoded<float>(Tensor<std::string>(Shape{0})).shape() == Shape{0, 0});
  CHECK(decoded<float>(Tensor<std::string>({2}, {"", ""})).shape() == Shape{2, 0});
}

TEST_CASE("bytes that are no whole numbers, or not as many everywhere, are refused", "[parsing]") {
  CHECK(mentions(status_of([] { return decoded<std::int16_t>("\1\2\3"s); }), "3 bytes are no multiple of 2"));
  const Status status = status_of([] { return decoded<std::int8_t>(Tensor<std::string>({2}, {"\1\2"s, "\1"s})); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(mentions(status, "that at [1] has 1 bytes, and the first 2"));
}
