#include <dflow/io/records/example_parser.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/io/records/example.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;
using namespace std::string_view_literals;

// The expected values are from tf.io.parse_example and tf.io.parse_single_sequence_example of TensorFlow 2.21.
namespace {

using Integers = std::vector<std::int64_t>;

std::string example(const FeatureMap& features) { return serialize(Example{features}); }

std::string integers(Integers values) { return example({{"a", Feature::of_integers(std::move(values))}}); }

ParsedFeatures parse(const std::vector<std::string>& serialized, const FeaturesSpec& spec) {
  return parse_examples(std::span<const std::string>(serialized), spec);
}

Status status_of_parse(const std::vector<std::string>& serialized, const FeaturesSpec& spec) {
  return status_of([&] { return parse(serialized, spec); });
}

Integers elements(const AnyTensor& tensor) {
  const auto values = tensor.span<std::int64_t>();
  return {values.begin(), values.end()};
}

FeaturesSpec dense(PartialShape shape, std::optional<AnyTensor> default_value = {}) {
  return {.dense = {{"a", DType::int64, shape, std::move(default_value)}}, .sparse = {}};
}

FeaturesSpec sparse(DType dtype = DType::int64) { return {.dense = {}, .sparse = {{"a", dtype}}}; }

const std::string nothing = example({{"a", Feature()}});
const std::string no_floats = example({{"a", Feature::of_floats({})}});

}  // namespace

TEST_CASE("dense features of a batch are rows of tensors", "[example_parser]") {
  const std::vector<std::string> batch = {
      example(
          {{"x", Feature::of_floats({1, 2})}, {"label", Feature::of_integers({7})}, {"s", Feature::of_text("one")}}),
      example(
          {{"x", Feature::of_floats({3, 4})}, {"label", Feature::of_integers({8})}, {"s", Feature::of_text("two")}})};
  const ParsedFeatures parsed = parse(
      batch,
      {.dense = {{"s", DType::string, {}, {}}, {"x", DType::float32, {2, 1}, {}}, {"label", DType::int64, {}, {}}},
       .sparse = {}});
  REQUIRE(parsed.dense.size() == 3);
  CHECK(bitwise_equal(parsed.dense[0], Tensor<std::string>({2}, {"one", "two"})));
  CHECK(bitwise_equal(parsed.dense[1], Tensor<float>({2, 2, 1}, {1, 2, 3, 4})));
  CHECK(bitwise_equal(parsed.dense[2], Tensor<std::int64_t>({2}, {7, 8})));
}

TEST_CASE("defaults stand in for features that are missing", "[example_parser]") {
  const std::vector<std::string> batch = {integers({1, 2}), example({}), nothing};
  CHECK(elements(parse(batch, dense({2}, Tensor<std::int64_t>({2}, {9, 8}))).dense[0]) == Integers{1, 2, 9, 8, 9, 8});
  CHECK(elements(parse(batch, dense({2}, Tensor<std::int64_t>(5))).dense[0]) == Integers{1, 2, 5, 5, 5, 5});
  CHECK(parse({example({})}, {.dense = {{"s", DType::string, {}, Tensor<std::string>("z")}}, .sparse = {}})
            .dense[0]
            .as<std::string>()(0) == "z");
}

TEST_CASE("what is wrong with a feature is InvalidArgument that names example and feature", "[example_parser]") {
  const auto check = [](const Status& status, std::string_view what) {
    CHECK(status.code() == Code::invalid_argument);
    CHECK(mentions(status, "example 1: feature 'a': "));
    CHECK(mentions(status, what));
  };
  const std::string good = integers({1, 2});
  check(status_of_parse({good, example({})}, dense({2})), "required");
  check(status_of_parse({good, nothing}, dense({2})), "required");
  check(status_of_parse({good, integers({1, 2, 3})}, dense({2})), "3 values");
  check(status_of_parse({good, integers({})}, dense({2})), "0 values");
  check(status_of_parse({good, integers({})}, dense({2}, Tensor<std::int64_t>(0))), "0 values");
  check(status_of_parse({good, example({{"a", Feature::of_floats({1, 2})}})}, dense({2})), "float");
  check(status_of_parse({good, no_floats}, dense({2})), "float");
  check(status_of_parse({good, no_floats}, dense({2}, Tensor<std::int64_t>(0))), "float");
  check(status_of_parse({good, no_floats}, sparse()), "float");
  check(status_of_parse({good, integers({1, 2, 3})}, dense({dynamic, 2})), "3 values");
}

TEST_CASE("features of unknown length are padded to the longest", "[example_parser]") {
  const ParsedFeatures flat = parse({integers({1, 2}), integers({1, 2, 3}), example({})}, dense({dynamic}));
  CHECK(flat.dense[0].shape() == Shape{3, 3});
  CHECK(elements(flat.dense[0]) == Integers{1, 2, 0, 1, 2, 3, 0, 0, 0});
  const ParsedFeatures steps =
      parse({integers({1, 2, 3, 4}), integers({1, 2})}, dense({dynamic, 2}, Tensor<std::int64_t>(-1)));
  CHECK(steps.dense[0].shape() == Shape{2, 2, 2});
  CHECK(elements(steps.dense[0]) == Integers{1, 2, 3, 4, 1, 2, -1, -1});
  CHECK(parse({}, dense({dynamic, 2})).dense[0].shape() == Shape{0, 0, 2});
}

TEST_CASE("features of any length are sparse tensors", "[example_parser]") {
  const ParsedFeatures parsed =
      parse({integers({1, 2}), integers({3, 4}), integers({1, 2, 3}), example({}), nothing}, sparse());
  CHECK(elements(parsed.sparse[0].indices) == Integers{0, 0, 0, 1, 1, 0, 1, 1, 2, 0, 2, 1, 2, 2});
  CHECK(parsed.sparse[0].indices.shape() == Shape{7, 2});
  CHECK(elements(parsed.sparse[0].values) == Integers{1, 2, 3, 4, 1, 2, 3});
  CHECK(elements(parsed.sparse[0].dense_shape) == Integers{5, 3});
  const ParsedFeatures texts = parse({example({{"a", Feature::of_text("x")}}), example({})}, sparse(DType::string));
  CHECK(bitwise_equal(texts.sparse[0].values, Tensor<std::string>({1}, {"x"})));
  CHECK(elements(texts.sparse[0].dense_shape) == Integers{2, 1});
  const ParsedFeatures none = parse({}, sparse());
  CHECK(none.sparse[0].indices.shape() == Shape{0, 2});
  CHECK(elements(none.sparse[0].dense_shape) == Integers{0, 0});
}

TEST_CASE("of a feature that is there twice the later counts", "[example_parser]") {
  const std::string twice = integers({1, 2}) + integers({5, 6});
  CHECK(elements(parse({twice}, dense({2})).dense[0]) == Integers{5, 6});
  CHECK(elements(parse({twice}, sparse()).sparse[0].values) == Integers{5, 6});
}

TEST_CASE("a feature may be wanted in two ways", "[example_parser]") {
  FeaturesSpec both = dense({2});
  both.sparse = sparse().sparse;
  const ParsedFeatures parsed = parse({integers({1, 2})}, both);
  CHECK(elements(parsed.dense[0]) == elements(parsed.sparse[0].values));
}

TEST_CASE("an example alone has no dimension of the batch", "[example_parser]") {
  FeaturesSpec spec = dense({2});
  spec.sparse = {{"a", DType::int64}, {"none", DType::float32}};
  const ParsedFeatures parsed = parse_single_example(integers({1, 2}), spec);
  CHECK(parsed.dense[0].shape() == Shape{2});
  CHECK(elements(parsed.sparse[0].indices) == Integers{0, 1});
  CHECK(parsed.sparse[0].indices.shape() == Shape{2, 1});
  CHECK(elements(parsed.sparse[0].dense_shape) == Integers{2});
  CHECK(parsed.sparse[1].indices.shape() == Shape{0, 1});
  CHECK(elements(parsed.sparse[1].dense_shape) == Integers{0});
  CHECK(parse_single_example(integers({1, 2}), dense({dynamic, 1})).dense[0].shape() == Shape{2, 1});
}

TEST_CASE("a batch may be a tensor of texts", "[example_parser]") {
  const Tensor<std::string> batch({2}, {integers({1}), integers({2})});
  CHECK(elements(parse_examples(batch, dense({})).dense[0]) == Integers{1, 2});
  const std::vector<std::string_view> views(batch.begin(), batch.end());
  CHECK(elements(parse_examples(std::span<const std::string_view>(views), dense({})).dense[0]) == Integers{1, 2});
  CHECK(code_of([&] { return parse_examples(Tensor<float>({1}), dense({})); }) == Code::invalid_argument);
  CHECK(code_of([&] { return parse_examples(Tensor<std::string>({1, 1}), dense({})); }) == Code::invalid_argument);
}

TEST_CASE("a specification that makes no sense is InvalidArgument", "[example_parser]") {
  CHECK(status_of_parse({}, sparse(DType::int32)).code() == Code::invalid_argument);
  CHECK(status_of_parse({}, dense({2, dynamic})).code() == Code::invalid_argument);
  CHECK(status_of_parse({}, dense({dynamic, 0})).code() == Code::invalid_argument);
  CHECK(status_of_parse({}, dense(PartialShape::unknown())).code() == Code::invalid_argument);
  CHECK(status_of_parse({}, dense({2}, Tensor<float>(0.0f))).code() == Code::invalid_argument);
  CHECK(status_of_parse({}, dense({2}, Tensor<std::int64_t>({3}, {1, 2, 3}))).code() == Code::invalid_argument);
  CHECK(status_of_parse({}, dense({dynamic}, Tensor<std::int64_t>({2}, {1, 2}))).code() == Code::invalid_argument);
  CHECK(status_of_parse({}, dense({0, 3})).ok());
}

TEST_CASE("bytes that are no example are DataLoss that names the example", "[example_parser]") {
  const Status bad = status_of_parse({integers({1}), "\x0a\xff"}, dense({}));
  CHECK(bad.code() == Code::data_loss);
  CHECK(mentions(bad, "example 1: "));
}

namespace {

std::string sequence(FeatureMap context, std::vector<std::pair<std::string, std::vector<Feature>>> lists) {
  SequenceExample example{std::move(context), {}};
  for (auto& [name, list] : lists) example.feature_lists[name] = std::move(list);
  return serialize(example);
}

const std::string known =
    sequence({{"len", Feature::of_integers({2})}},
             {{"tok", {Feature::of_integers({4}), Feature::of_integers({5, 6})}},
              {"d", {Feature::of_integers({1, 2}), Feature::of_integers({3, 4}), Feature::of_integers({5, 6})}}});

Status status_of_lists(const std::string& serialized, const FeatureListsSpec& lists) {
  return status_of([&] { return parse_single_sequence_example(serialized, {}, lists); });
}

}  // namespace

TEST_CASE("a sequence example is a context and lists", "[example_parser]") {
  const ParsedSequence parsed = parse_single_sequence_example(
      known, {.dense = {{"len", DType::int64, {}, {}}}, .sparse = {{"len", DType::int64}, {"q", DType::int64}}},
      {.dense = {{"d", DType::int64, {2}}}, .sparse = {{"tok", DType::int64}, {"no", DType::int64}}});
  CHECK(parsed.context.dense[0].as<std::int64_t>().scalar() == 2);
  CHECK(elements(parsed.context.sparse[0].dense_shape) == Integers{1});
  CHECK(elements(parsed.context.sparse[1].dense_shape) == Integers{0});
  CHECK(parsed.lists.dense[0].shape() == Shape{3, 2});
  CHECK(elements(parsed.lists.dense[0]) == Integers{1, 2, 3, 4, 5, 6});
  CHECK(elements(parsed.lists.sparse[0].indices) == Integers{0, 0, 1, 0, 1, 1});
  CHECK(elements(parsed.lists.sparse[0].values) == Integers{4, 5, 6});
  CHECK(elements(parsed.lists.sparse[0].dense_shape) == Integers{2, 2});
  CHECK(elements(parsed.lists.sparse[1].dense_shape) == Integers{0, 0});
}

TEST_CASE("steps without a feature are empty rows of a sparse list and errors of a dense one", "[example_parser]") {
  const std::string gap = sequence({}, {{"d", {Feature::of_integers({1, 2}), Feature(), Feature::of_integers({3})}}});
  const ParsedSequence parsed = parse_single_sequence_example(gap, {}, {.dense = {}, .sparse = {{"d", DType::int64}}});
  CHECK(elements(parsed.lists.sparse[0].indices) == Integers{0, 0, 0, 1, 2, 0});
  CHECK(elements(parsed.lists.sparse[0].dense_shape) == Integers{3, 2});
  const Status missing = status_of_lists(gap, {.dense = {{"d", DType::int64, {2}}}, .sparse = {}});
  CHECK(missing.code() == Code::invalid_argument);
  CHECK(mentions(missing, "feature list 'd', step 1"));
}

TEST_CASE("what is wrong with a list is InvalidArgument that names it", "[example_parser]") {
  const Status missing = status_of_lists(known, {.dense = {{"no", DType::int64, {}}}, .sparse = {}});
  CHECK(missing.code() == Code::invalid_argument);
  CHECK(mentions(missing, "'no'"));
  const ParsedSequence allowed =
      parse_single_sequence_example(known, {}, {.dense = {{"no", DType::int64, {2}, true}}, .sparse = {}});
  CHECK(allowed.lists.dense[0].shape() == Shape{0, 2});
  CHECK(status_of_lists(known, {.dense = {{"tok", DType::int64, {}}}, .sparse = {}}).code() == Code::invalid_argument);
  CHECK(status_of_lists(known, {.dense = {{"d", DType::float32, {2}}}, .sparse = {}}).code() == Code::invalid_argument);
  CHECK(status_of_lists(known, {.dense = {}, .sparse = {{"d", DType::float32}}}).code() == Code::invalid_argument);
  CHECK(status_of_lists(known, {.dense = {}, .sparse = {{"d", DType::boolean}}}).code() == Code::invalid_argument);
  CHECK(status_of_lists("\x12\x05\x0a", {}).code() == Code::data_loss);
}

TEST_CASE("damaged examples give tensors or an error, never more", "[example_parser]") {
  const std::string whole = example({{"a", Feature::of_integers({1, 2})}, {"f", Feature::of_floats({1, 2})}});
  const FeaturesSpec spec{.dense = {{"a", DType::int64, {2}, {}}, {"f", DType::float32, {dynamic}, {}}},
                          .sparse = {{"a", DType::int64}, {"f", DType::float32}}};
  std::mt19937 random(17);
  for (int round = 0; round < 10000; ++round) {
    std::string damaged = whole.substr(0, random() % (whole.size() + 1));
    for (int flips = 0; flips < 2 && !damaged.empty(); ++flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    const Code code = status_of_parse({whole, damaged}, spec).code();
    if (code != Code::ok && code != Code::data_loss && code != Code::invalid_argument) FAIL("round " << round);
  }
}
