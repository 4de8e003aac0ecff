#include <dflow/io/records/example.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/io/records/record_file.hpp>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <string_view>

using namespace dflow;
using namespace std::string_literals;
using namespace std::string_view_literals;

namespace {

// TensorFlow 2.21: {age: [-3, 0, 2^63 - 1], b: ["hello", "", "\0\xff"], f: [1.5, -0.0, inf], none: a Feature without
// list}, SerializeToString(deterministic=True).
constexpr std::string_view example_bytes =
    "\x0a\x58\x0a\x1f\x0a\x03\x61\x67\x65\x12\x18\x1a\x16\x0a\x14\xfd\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\xff\xff"
    "\xff\xff\xff\xff\xff\xff\x7f\x0a\x14\x0a\x01\x62\x12\x0f\x0a\x0d\x0a\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x0a\x02\x00"
    "\xff\x0a\x15\x0a\x01\x66\x12\x10\x12\x0e\x0a\x0c\x00\x00\xc0\x3f\x00\x00\x00\x80\x00\x00\x80\x7f\x0a\x08\x0a\x04"
    "\x6e\x6f\x6e\x65\x12\x00"sv;
// {len: [2]} and {empty: [], tok: [[4], [5, 6]]}.
constexpr std::string_view sequence_bytes =
    "\x0a\x0e\x0a\x0c\x0a\x03\x6c\x65\x6e\x12\x05\x1a\x03\x0a\x01\x02\x12\x23\x0a\x09\x0a\x05\x65\x6d\x70\x74\x79\x12"
    "\x00\x0a\x16\x0a\x03\x74\x6f\x6b\x12\x0f\x0a\x05\x1a\x03\x0a\x01\x04\x0a\x06\x1a\x04\x0a\x02\x05\x06"sv;

Example known_example() {
  Example example;
  example.features["age"] = Feature::of_integers({-3, 0, std::numeric_limits<std::int64_t>::max()});
  example.features["b"] = Feature::of_texts({"hello", "", "\0\xff"s});
  example.features["f"] = Feature::of_floats({1.5f, -0.0f, std::numeric_limits<float>::infinity()});
  example.features["none"] = Feature();
  return example;
}

SequenceExample known_sequence() {
  SequenceExample example;
  example.context["len"] = Feature::of_integers({2});
  example.feature_lists["tok"] = {Feature::of_integers({4}), Feature::of_integers({5, 6})};
  example.feature_lists["empty"] = {};
  return example;
}

}  // namespace

TEST_CASE("an example is the bytes that TensorFlow writes, both ways", "[example]") {
  CHECK(serialize(known_example()) == example_bytes);
  CHECK(parse_example(example_bytes) == known_example());
  CHECK(serialize(known_sequence()) == sequence_bytes);
  CHECK(parse_sequence_example(sequence_bytes) == known_sequence());
  CHECK(serialize(Example()).empty());
  CHECK(parse_example("") == Example());
  CHECK(serialize(SequenceExample()).empty());
  CHECK(parse_sequence_example("") == SequenceExample());
}

TEST_CASE("a feature says its type and refuses another", "[example]") {
  const Example example = parse_example(example_bytes);
  CHECK(example.features.at("b").dtype() == DType::string);
  CHECK(example.features.at("f").dtype() == DType::float32);
  CHECK(example.features.at("age").dtype() == DType::int64);
  CHECK(example.features.at("none").dtype() == DType::invalid);
  CHECK(example.features.at("age").integers()[0] == -3);
  const Status wrong = status_of([&] { return example.features.at("age").floats(); });
  CHECK(wrong.code() == Code::invalid_argument);
  CHECK(mentions(wrong, "int64"));
  CHECK(mentions(wrong, "float"));
  CHECK(code_of([&] { return example.features.at("none").texts(); }) == Code::invalid_argument);
}

TEST_CASE("floats of features are equal if their bits are", "[example]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(Feature::of_floats({nan}) == Feature::of_floats({nan}));
  CHECK_FALSE(Feature::of_floats({0.0f}) == Feature::of_floats({-0.0f}));
  CHECK_FALSE(Feature::of_floats({}) == Feature::of_integers({}));
  CHECK_FALSE(Feature::of_floats({1, 2}) == Feature::of_floats({1}));
}

TEST_CASE("numbers that are not packed are read, and features that are there twice count once", "[example]") {
  // {age: [7, 8]} with its numbers one by one.
  const Example unpacked = parse_example("\x0a\x0f\x0a\x0d\x0a\x03\x61\x67\x65\x12\x06\x1a\x04\x08\x07\x08\x08"sv);
  CHECK(unpacked.features.at("age") == Feature::of_integers({7, 8}));
  // As protocol buffers merge: of two records the later features, of two lists the later type, both of one type.
  Example first, second;
  first.features["a"] = Feature::of_integers({1});
  first.features["b"] = Feature::of_integers({2});
  second.features["a"] = Feature::of_floats({3});
  const Example merged = parse_example(serialize(first) + serialize(second));
  CHECK(merged.features.at("a") == Feature::of_floats({3}));
  CHECK(merged.features.at("b") == Feature::of_integers({2}));
  // {a: Feature{float_list [], int64_list [1], int64_list [2]}}
  const Example lists =
      parse_example("\x0a\x13\x0a\x11\x0a\x01\x61\x12\x0c\x12\x00\x1a\x03\x0a\x01\x01\x1a\x03\x0a\x01\x02"sv);
  CHECK(lists.features.at("a") == Feature::of_integers({1, 2}));
}

TEST_CASE("golden record files hold examples", "[example]") {
  const char* root = std::getenv("DFLOW_DATA");
  if (root == nullptr) {
    WARN("DFLOW_DATA is not set: formats/examples.tfrecord is not read");
    return;
  }
  PosixFileSystem files;
  RecordReader reader(files, std::string(root) + "/formats/examples.tfrecord");
  Example first = known_example();
  first.features.erase("none");
  CHECK(parse_example(reader.read()) == first);
  const Example second = parse_example(reader.read());
  CHECK(second.features.at("age") == Feature::of_integers({7, 8}));
  CHECK(second.features.at("f") == Feature::of_floats({}));
  CHECK(parse_example(reader.read()) == Example());
  RecordReader sequences(files, std::string(root) + "/formats/sequence_example.tfrecord");
  SequenceExample sequence = known_sequence();
  sequence.feature_lists.erase("empty");
  CHECK(parse_sequence_example(sequences.read()) == sequence);
}

TEST_CASE("examples cut at any byte are DataLoss, or empty", "[example]") {
  for (std::size_t size = 0; size < example_bytes.size(); ++size) {
    const std::string cut(example_bytes.substr(0, size));
    CHECK(code_of([&] { return parse_example(cut); }) == (size == 0 ? Code::ok : Code::data_loss));
  }
  for (std::size_t size = 0; size < sequence_bytes.size(); ++size) {
    const std::string cut(sequence_bytes.substr(0, size));
    // Between the context, of 16 bytes, and the lists the example is one without lists.
    CHECK(code_of([&] { return parse_sequence_example(cut); }) ==
          (size == 0 || size == 16 ? Code::ok : Code::data_loss));
  }
}

TEST_CASE("flipped bits give an example or DataLoss, never more", "[example]") {
  const auto survives = [](const std::string& damaged) {
    for (const Code code :
         {code_of([&] { return parse_example(damaged); }), code_of([&] { return parse_sequence_example(damaged); })}) {
      if (code != Code::ok && code != Code::data_loss) return false;
    }
    return true;
  };
  for (const std::string_view whole : {example_bytes, sequence_bytes}) {
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string damaged(whole);
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      if (!survives(damaged)) FAIL("bit " << bit);
    }
    std::mt19937 random(5);
    for (int round = 0; round < 10000; ++round) {
      std::string damaged(whole);
      for (int flips = 0; flips < 3; ++flips) damaged[random() % damaged.size()] = static_cast<char>(random());
      if (!survives(damaged)) FAIL("round " << round);
    }
  }
}
