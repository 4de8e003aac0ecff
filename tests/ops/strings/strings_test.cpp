#include <dflow/ops/strings/list.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

using namespace dflow;

// The values of each op are in tests/oracle/strings.json; here are the errors of builders, and bytes that JSON lacks.

namespace {

Tensor<std::string> some_texts(std::initializer_list<std::string> texts) {
  return Tensor<std::string>({static_cast<std::int64_t>(texts.size())}, std::span(texts.begin(), texts.size()));
}

}  // namespace

TEST_CASE("texts are joined, cut and measured", "[strings]") {
  Graph graph;
  const auto names = constant(graph, some_texts({"ab", "cde"}));
  const auto joined = string_join({constant(graph, "dir"), names}, "/");
  CHECK(joined.shape() == PartialShape({2}));
  const auto all = reduce_join(joined, {0}, {.separator = ";"});
  CHECK(all.shape() == PartialShape(Shape{}));
  const auto lengths = string_length(joined);
  const auto tails = substr(joined, -2, 2);
  Session session(graph);
  CHECK(session.run(all).scalar() == "dir/ab;dir/cde");
  CHECK(bitwise_equal(session.run(lengths), Tensor<std::int32_t>({2}, {6, 7})));
  CHECK(bitwise_equal(session.run(tails), some_texts({"ab", "de"})));
}

TEST_CASE("numbers are written and read back", "[strings]") {
  Graph graph;
  const Tensor<std::int64_t> numbers({2, 2}, {1, -2, 1LL << 40, 0});
  const auto texts = as_string(constant(graph, numbers), {.width = 4});
  const auto back = string_to_number<std::int64_t>(texts);
  static_assert(std::same_as<decltype(string_to_number(texts)), Output<float>>);
  CHECK(back.shape() == PartialShape({2, 2}));
  Session session(graph);
  CHECK(bitwise_equal(session.run(back), numbers));
  CHECK(session.run(texts)(0, 1) == "  -2");

  const auto fed = placeholder<std::string>(graph);
  const Status status = status_of([&] {
    return session.run({{fed, some_texts({"1", "2", "no\x01"})}}, string_to_number<double>(fed));
  });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(mentions(status, "string[2] = 'no\\x01' to double"));
}

TEST_CASE("NaN is written without a sign", "[strings]") {
  Graph graph;
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Tensor<double> numbers({3}, {none, std::copysign(none, -1.0), -1});
  Session session(graph);
  const auto written = session.run(as_string(constant(graph, numbers), {.precision = 0, .width = 4, .fill = "+"}));
  CHECK(bitwise_equal(written, some_texts({"+nan", "+nan", "  -1"})));
}

TEST_CASE("texts are written as they are, and with a width as far as the precision goes", "[strings]") {
  Graph graph;
  const auto texts = constant(graph, some_texts({"abcd", "", "\xc3\xa9\xe6\xbc\xa2"}));
  Session session(graph);
  const auto written = [&](AsString::Attrs attrs) { return session.run(as_string(texts, std::move(attrs))); };
  // TensorFlow 2.21 gives the same values.
  CHECK(bitwise_equal(written({.precision = 2}), some_texts({"abcd", "", "\xc3\xa9\xe6\xbc\xa2"})));
  CHECK(bitwise_equal(written({.precision = 2, .width = 0}), some_texts({"abcd", "", "\xc3\xa9\xe6\xbc\xa2"})));
  CHECK(bitwise_equal(written({.precision = 2, .width = 5}), some_texts({"   ab", "     ", "   \xc3\xa9"})));
  CHECK(
      bitwise_equal(written({.precision = 2, .width = 5, .fill = "-"}), some_texts({"ab   ", "     ", "\xc3\xa9   "})));
  CHECK(bitwise_equal(written({.precision = 0, .width = 3}), some_texts({"   ", "   ", "   "})));
  CHECK(bitwise_equal(written({.width = 5, .fill = "0"}), some_texts({" abcd", "     ", "\xc3\xa9\xe6\xbc\xa2"})));
}

TEST_CASE("what a text is split into is a sparse matrix", "[strings]") {
  Graph graph;
  const auto lines = placeholder<std::string>(graph, {dynamic});
  const SparseOutput<std::string> words = string_split(lines, " ,"), fields = string_split_v2(lines, ", ");
  CHECK(words.indices.shape() == PartialShape({dynamic, 2}));
  CHECK(words.dense_shape.shape() == PartialShape({2}));
  Session session(graph);
  const auto text = some_texts({"a, b", "", std::string("\0,\xff", 3)});
  const auto [indices, values, shape] = session.run({{lines, text}}, words.indices, words.values, words.dense_shape);
  CHECK(bitwise_equal(indices, Tensor<std::int64_t>({4, 2}, {0, 0, 0, 1, 2, 0, 2, 1})));
  CHECK(bitwise_equal(values, some_texts({"a", "b", std::string(1, '\0'), "\xff"})));
  CHECK(bitwise_equal(shape, Tensor<std::int64_t>({2}, {3, 2})));
  CHECK(bitwise_equal(session.run({{lines, text}}, fields.values),
                      some_texts({"a", "b", "", std::string("\0,\xff", 3)})));
}

TEST_CASE("texts fall into the same buckets in every process", "[strings]") {
  // tf.raw_ops of TensorFlow 2.21.0, with 2^62 buckets
  Graph graph;
  const auto texts = constant(graph, some_texts({"", "hello"}));
  constexpr std::int64_t buckets = std::int64_t{1} << 62;
  Session session(graph);
  CHECK(bitwise_equal(session.run(string_to_hash_bucket_fast(texts, buckets)),
                      Tensor<std::int64_t>({2}, {1936946117179621455, 3786372426573024488})));
  CHECK(bitwise_equal(session.run(string_to_hash_bucket_strong(texts, buckets, {123, 456})),
                      Tensor<std::int64_t>({2}, {887865449656487406, 3917950836011642579})));
  CHECK(bitwise_equal(session.run(string_to_hash_bucket(texts, buckets)),
                      Tensor<std::int64_t>({2}, {105434511174508091, 1331861223480393034})));
  CHECK(code_of([&] { return string_to_hash_bucket_fast(texts, 0); }) == Code::invalid_argument);
}

TEST_CASE("bytes of any kind survive base64 in a graph", "[strings]") {
  Graph graph;
  std::string bytes(256, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  const auto texts = constant(graph, some_texts({bytes, "", "\xff"}));
  Session session(graph);
  for (const bool pad : {false, true}) {
    CHECK(bitwise_equal(session.run(decode_base64(encode_base64(texts, {.pad = pad}))), session.run(texts)));
  }
}

TEST_CASE("an op on a list of texts takes as many as its attribute says, and texts alone", "[strings]") {
  Graph graph;
  const AnyOutput text = constant(graph, "a"), number = constant(graph, 1.0f);
  CHECK(code_of([&] { return build<StringJoin>({text, text}, {.N = 1}); }) == Code::invalid_argument);
  CHECK(mentions(status_of([&] { return build<StringJoin>({text, number}, {.N = 2}); }), "must be string"));
  CHECK(code_of([&] { return string_join(std::initializer_list<Output<std::string>>{}); }) == Code::invalid_argument);
}
