#include <dflow/ops/parsing/parse_example.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/io/records/example.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

using namespace dflow;
using namespace std::string_literals;

// The results of the records, and the refused records, were tried with tf.raw_ops.ParseExample, ParseSingleExample,
// ParseSingleSequenceExample and DecodeJSONExample of TensorFlow 2.21.0.

namespace {

using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

/// pixels [2, 2], label, words and steps; the second has no label.
Tensor<std::string> three_records() {
  Example first, second, third;
  first.features = {{"pixels", Feature(Floats{1, 2, 3, 4})},
                    {"label", Feature(Integers{7})},
                    {"words", Feature(Texts{"a", "bc"})},
                    {"steps", Feature(Integers{1, 2, 3})}};
  second.features = {
      {"pixels", Feature(Floats{5, 6, 7, 8})}, {"words", Feature(Texts{})}, {"steps", Feature(Integers{})}};
  third.features = {
      {"pixels", Feature(Floats{0, 0, 0, -1})}, {"label", Feature(Integers{-9})}, {"steps", Feature(Integers{4})}};
  return Tensor<std::string>({3}, {serialize(first), serialize(second), serialize(third)});
}

std::string one_sequence() {
  SequenceExample example;
  example.context = {{"label", Feature(Integers{3})}, {"tags", Feature(Texts{"x", "y"})}};
  example.feature_lists = {{"frames", {Feature(Floats{1, 2}), Feature(Floats{3, 4}), Feature(Floats{5, 6})}},
                           {"words", {Feature(Texts{"a"}), Feature(Texts{}), Feature(Texts{"b", "c"})}}};
  return serialize(example);
}

/// The values of one feature in the three records, as a step gives them.
template <class F>
Status status_of_feature(F feature, Tensor<std::string> records = three_records()) {
  Graph graph;
  const auto fed = placeholder<std::string>(graph, {dynamic});
  const auto [output] = parse_example(fed, std::tuple{feature});
  Session session(graph);
  return status_of([&] { return session.run({{fed, records}}, output); });
}

}  // namespace

TEST_CASE("a batch of examples becomes dense and sparse tensors", "[parsing]") {
  Graph graph;
  const auto records = placeholder<std::string>(graph, {dynamic});
  const auto [pixels, words, label, steps] =
      parse_example(records, std::tuple{FixedLenFeature<float>{"pixels", {2, 2}}, VarLenFeature<std::string>{"words"},
                                        FixedLenFeature<std::int64_t>{"label", Shape{}, Tensor<std::int64_t>(-1)},
                                        FixedLenFeature<std::int64_t>{"steps", {dynamic}}});
  static_assert(std::same_as<std::remove_cvref_t<decltype(words)>, SparseOutput<std::string>>);
  static_assert(std::same_as<std::remove_cvref_t<decltype(label)>, Output<std::int64_t>>);
  CHECK(pixels.shape() == PartialShape({dynamic, 2, 2}));
  CHECK(steps.shape() == PartialShape({dynamic, dynamic}));
  CHECK(words.indices.shape() == PartialShape({dynamic, 2}));
  Session session(graph);
  const Feed feed{records, three_records()};
  CHECK(bitwise_equal(session.run({feed}, pixels), Tensor<float>({3, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, -1})));
  CHECK(bitwise_equal(session.run({feed}, label), Tensor<std::int64_t>({3}, {7, -1, -9})));
  CHECK(bitwise_equal(session.run({feed}, steps), Tensor<std::int64_t>({3, 3}, {1, 2, 3, 0, 0, 0, 4, 0, 0})));
  const auto [indices, values, shape] = session.run({feed}, words.indices, words.values, words.dense_shape);
  CHECK(bitwise_equal(indices, Tensor<std::int64_t>({2, 2}, {0, 0, 0, 1})));
  CHECK(bitwise_equal(values, Tensor<std::string>({2}, {"a", "bc"})));
  CHECK(bitwise_equal(shape, Tensor<std::int64_t>({2}, {3, 2})));
  // without any example
  const Feed none{records, Tensor<std::string>(Shape{0})};
  CHECK(session.run({none}, pixels).shape() == Shape{0, 2, 2});
  CHECK(session.run({none}, steps).shape() == Shape{0, 0});
  CHECK(session.run({none}, words.indices).shape() == Shape{0, 2});
}

TEST_CASE("one example has no dimension of a batch", "[parsing]") {
  Graph graph;
  const auto record = constant(graph, three_records()(0));
  const auto [words, none, pixels] =
      parse_single_example(record, std::tuple{VarLenFeature<std::string>{"words"}, VarLenFeature<float>{"none"},
                                              FixedLenFeature<float>{"pixels", {2, 2}}});
  CHECK(pixels.shape() == PartialShape({2, 2}));
  Session session(graph);
  CHECK(bitwise_equal(session.run(words.indices), Tensor<std::int64_t>({2, 1}, {0, 1})));
  CHECK(bitwise_equal(session.run(words.dense_shape), Tensor<std::int64_t>({1}, {2})));
  CHECK(bitwise_equal(session.run(none.dense_shape), Tensor<std::int64_t>({1}, {0})));
  CHECK(bitwise_equal(session.run(pixels), Tensor<float>({2, 2}, {1, 2, 3, 4})));
}

TEST_CASE("a sequence example has a context and lists of steps", "[parsing]") {
  Graph graph;
  const auto record = placeholder<std::string>(graph, Shape{});
  const auto [context, lists] = parse_single_sequence_example(
      record, std::tuple{FixedLenFeature<std::int64_t>{"label"}, VarLenFeature<std::string>{"tags"}},
      std::tuple{VarLenFeature<std::string>{"words"}, FixedLenSequenceFeature<float>{"frames", {2}},
                 FixedLenSequenceFeature<float>{"gone", {2}, true}});
  const auto& [label, tags] = context;
  const auto& [words, frames, gone] = lists;
  CHECK(frames.shape() == PartialShape({dynamic, 2}));
  Session session(graph);
  const Feed feed{record, Tensor<std::string>(one_sequence())};
  CHECK(session.run({feed}, label).scalar() == 3);
  CHECK(bitwise_equal(session.run({feed}, tags.values), Tensor<std::string>({2}, {"x", "y"})));
  CHECK(bitwise_equal(session.run({feed}, words.indices), Tensor<std::int64_t>({3, 2}, {0, 0, 2, 0, 2, 1})));
  CHECK(bitwise_equal(session.run({feed}, words.values), Tensor<std::string>({3}, {"a", "b", "c"})));
  CHECK(bitwise_equal(session.run({feed}, words.dense_shape), Tensor<std::int64_t>({2}, {3, 2})));
  CHECK(bitwise_equal(session.run({feed}, frames), Tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6})));
  CHECK(session.run({feed}, gone).shape() == Shape{0, 2});

  const auto required =
      parse_single_sequence_example(record, std::tuple<>{}, std::tuple{FixedLenSequenceFeature<float>{"gone", {2}}});
  const Status status = status_of([&] { return session.run({feed}, std::get<0>(required.lists)); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(mentions(status, "feature list 'gone' is required, and missing"));
  const auto longer =
      parse_single_sequence_example(record, std::tuple<>{}, std::tuple{FixedLenSequenceFeature<float>{"frames", {3}}});
  CHECK(mentions(status_of([&] { return session.run({feed}, std::get<0>(longer.lists)); }),
                 "feature list 'frames', step 0: it has 2 values"));
}

TEST_CASE("examples that do not fit are refused by example and feature", "[parsing]") {
  using Label = FixedLenFeature<std::int64_t>;
  const Status missing = status_of_feature(Label{"label"});
  CHECK(missing.code() == Code::invalid_argument);
  CHECK(mentions(missing, "example 1: feature 'label': it is required, and missing"));
  CHECK(mentions(status_of_feature(FixedLenFeature<std::int64_t>{"nothing", {0}}), "required, and missing"));
  CHECK(
      mentions(status_of_feature(FixedLenFeature<float>{"label"}), "example 0: feature 'label': its values are int64"));
  CHECK(mentions(status_of_feature(FixedLenFeature<float>{"pixels", {3}}), "it has 4 values, its shape is [3]"));
  CHECK(mentions(status_of_feature(FixedLenFeature<float>{"pixels", {dynamic, 3}}), "no multiple"));
  const Status damaged = status_of_feature(Label{"label"}, Tensor<std::string>({1}, {"\x0a\xff"s}));
  CHECK(damaged.code() == Code::data_loss);
  CHECK(mentions(damaged, "example 0: "));
}

TEST_CASE("names of examples are in messages, and as many as examples", "[parsing]") {
  Graph graph;
  const auto records = placeholder<std::string>(graph, {dynamic});
  const auto names = placeholder<std::string>(graph, {dynamic});
  const AnyOutput key = constant(graph, "label"), required = constant(graph, Tensor<std::int64_t>(Shape{0}));
  const std::vector<AnyOutput> inputs{records, names, key, required};
  const AnyOutput label = build<ParseExample>(
      std::span(inputs), {.Ndense = 1, .Tdense = {DType::int64}, .dense_shapes = {PartialShape(Shape{})}});
  Session session(graph);
  const auto label_of = Output<std::int64_t>(label);
  CHECK(mentions(
      status_of([&] {
        return session.run({{records, three_records()}, {names, Tensor<std::string>({3}, {"x", "y", "z"})}}, label_of);
      }),
      "example 1 ('y'): feature 'label'"));
  CHECK(code_of([&] {
          return session.run({{records, three_records()}, {names, Tensor<std::string>({1}, {"x"})}}, label_of);
        }) == Code::invalid_argument);
}

TEST_CASE("features that cannot be are refused when the node is built", "[parsing]") {
  Graph graph;
  const auto records = placeholder<std::string>(graph, {dynamic});
  const auto refused = [&](const auto& feature) {
    return code_of([&] { return parse_example(records, std::tuple{feature}); }) == Code::invalid_argument;
  };
  CHECK(refused(FixedLenFeature<float>{"x", {2, dynamic}}));
  CHECK(refused(FixedLenFeature<float>{"x", {2}, Tensor<float>({3}, {1, 2, 3})}));
  CHECK(refused(FixedLenFeature<float>{"x", {dynamic}, Tensor<float>({2}, {1, 2})}));
  CHECK(refused(FixedLenFeature<float>{"x", PartialShape::unknown()}));
  const auto matrix = placeholder<std::string>(graph, {2, 2});
  CHECK(code_of([&] { return parse_example(matrix, std::tuple{VarLenFeature<float>{"x"}}); }) ==
        Code::invalid_argument);
}

TEST_CASE("an Example in JSON becomes its bytes", "[parsing]") {
  Graph graph;
  const auto texts = placeholder<std::string>(graph);
  const auto bytes = decode_json_example(texts);
  Session session(graph);
  const auto found = session.run({{texts, Tensor<std::string>(R"({"features":{"feature":{"b":{"int64List":
      {"value":["1",2]}},"a":{"bytesList":{"value":["YQ=="]}}}}})"s)}},
                                 bytes);
  Example wanted;
  wanted.features = {{"a", Feature(Texts{"a"})}, {"b", Feature(Integers{1, 2})}};
  CHECK(parse_example(found.scalar()) == wanted);
  const Status status = status_of([&] {
    return session.run({{texts, Tensor<std::string>({2}, {"{}", "{\"x\":1}"})}}, bytes);
  });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(mentions(status, "text[1]: offset 4: no such field: 'x'"));
}
