// The snippets of docs/parsing.md, one function per section.

#include <dflow/dflow.hpp>
#include <dflow/io/records/example.hpp>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
}

std::string record(std::int64_t label, std::vector<std::string> words) {
  df::Example example;
  example.features["pixels"] = df::Feature::of_floats({0.5f, 0.25f});
  example.features["label"] = df::Feature::of_integers({label});
  example.features["words"] = df::Feature::of_texts(std::move(words));
  return df::serialize(example);
}

void examples() {
  // [examples]
  df::Graph graph;
  auto records = df::placeholder<std::string>(graph, {df::dynamic});  // [batch], each a serialised Example
  auto [pixels, label, words, weight] =
      df::parse_example(records, std::tuple{df::FixedLenFeature<float>{"pixels", {2}},         // Output, [batch, 2]
                                            df::FixedLenFeature<std::int64_t>{"label"},        // Output, [batch]
                                            df::VarLenFeature<std::string>{"words"},           // SparseOutput
                                            df::FixedLenFeature<float>{"weight", df::Shape{},  // has a default
                                                                       df::Tensor<float>(1.0f)}});
  // [examples]
  df::Session session(graph);
  const df::Feed feed{records, df::Tensor<std::string>({2}, {record(3, {"a", "b"}), record(4, {})})};
  require(session.run({feed}, label)(1) == 4, "label");
  require(session.run({feed}, pixels)(1, 1) == 0.25f, "pixels");
  require(session.run({feed}, weight)(0) == 1.0f, "weight");
  require(session.run({feed}, words.dense_shape)(1) == 2, "words");
}

void sequences() {
  df::SequenceExample example;
  example.context["label"] = df::Feature::of_integers({1});
  example.feature_lists["frames"] = {df::Feature::of_floats({1, 2}), df::Feature::of_floats({3, 4})};
  df::Graph graph;
  auto record = df::constant(graph, df::serialize(example));
  // [sequences]
  auto [context, lists] = df::parse_single_sequence_example(
      record, std::tuple{df::FixedLenFeature<std::int64_t>{"label"}},
      std::tuple{df::FixedLenSequenceFeature<float>{"frames", {2}}, df::VarLenFeature<std::string>{"words"}});
  auto [label] = context;        // []
  auto [frames, words] = lists;  // [steps, 2]; sparse [steps, longest]
  // [sequences]
  df::Session session(graph);
  require(session.run(label).scalar() == 1, "label");
  require(session.run(frames)(1, 0) == 3, "frames");
  require(session.run(words.dense_shape)(0) == 0, "words");
}

void csv() {
  // [csv]
  df::Graph graph;
  auto lines = df::placeholder<std::string>(graph, {df::dynamic});  // a record each
  auto [age, name] =
      df::decode_csv(lines, std::tuple{df::CsvField<float>{0.0f}, df::CsvField<std::string>{}});  // name is required
  // [csv]
  df::Session session(graph);
  const df::Feed feed{lines, df::Tensor<std::string>({2}, {"31,\"Lovelace, Ada\"", ",Alan"})};
  require(session.run({feed}, age)(1) == 0.0f, "age");
  require(session.run({feed}, name)(0) == "Lovelace, Ada", "name");
}

void bytes() {
  df::Graph graph;
  auto images = df::placeholder<std::string>(graph, {df::dynamic});
  // [bytes]
  auto pixels = df::decode_raw<std::uint8_t>(images);                                  // [batch, bytes of each]
  auto big = df::decode_raw<std::int16_t>(images, {.little_endian = false});           // [batch, bytes / 2]
  auto example = df::decode_json_example(df::constant(graph, R"({"features": {}})"));  // what parse_example reads
  // [bytes]
  df::Session session(graph);
  const df::Feed feed{images, df::Tensor<std::string>({1}, {std::string("\1\2", 2)})};
  require(session.run({feed}, pixels)(0, 1) == 2, "pixels");
  require(session.run({feed}, big)(0, 0) == 258, "big");
  require(session.run(example).scalar() == std::string("", 0), "example");
}

void texts() {
  df::Graph graph;
  auto lines = df::constant(graph, df::Tensor<std::string>({2}, {"3.5 apples", "2 pears"}));
  // [texts]
  df::SparseOutput<std::string> words = df::string_split(lines, " ");  // indices, values, dense_shape
  auto ids = df::string_to_hash_bucket_fast(words.values, 1000);       // the same in every process
  auto length = df::string_length(lines, {.unit = df::TextUnit::utf8_char});
  auto amount = df::string_to_number<float>(df::substr(lines, 0, 2));  // a text that is no number ends the step
  auto label = df::string_join({df::as_string(amount, {.precision = 1}), lines}, ": ");
  auto all = df::reduce_join(label, {0}, {.separator = "\n"});
  // [texts]
  df::Session session(graph);
  require(session.run(ids).dim(0) == 4, "ids");
  require(session.run(length)(1) == 7, "length");
  // [print]
  auto checked = df::print(amount, {length, words.values}, "amounts of ", {.first_n = 10, .summarize = 4});
  // [print]
  require(session.run(checked)(1) == 2.0f, "print");
  require(session.run(all).scalar() == "3.0: 3.5 apples\n2.0: 2 pears", "join");
}

void sparse() {
  df::Graph graph;
  df::Variable<float> table(graph, df::Tensor<float>({4, 2}, {0, 0, 1, 1, 2, 2, 3, 3}));
  df::Variable<float> weights(graph, df::Tensor<float>({2, 1}, {1, 2}));
  // [sparse]
  auto words = df::sparse_placeholder<std::int64_t>(graph, {df::dynamic, df::dynamic});  // as parse_example gives, too
  auto counts = df::sparse_placeholder<float>(graph, {df::dynamic, df::dynamic});
  auto bags = df::embedding_lookup_sparse(table, words, df::Combiner::mean);  // [batch, width]
  auto total = df::sparse_reduce_sum(counts, 1);                              // [batch]
  auto linear = df::sparse_tensor_dense_matmul(counts, weights);              // [batch, columns]
  auto dense = df::sparse_tensor_to_dense(words, -1);  // [batch, longest], -1 where there is none
  // [sparse]
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  // [sparse_feed]
  df::Tensor<std::int64_t> at({{0, 0}, {0, 1}, {2, 0}});  // the row of the batch, and the place in it
  df::SparseTensor<std::int64_t> some(at, {3, 1, 3}, {3, 2});
  df::SparseTensor<std::int64_t> again = session.run({{words, some}}, words);
  // [sparse_feed]
  const df::SparseTensor<float> ones(at, {1, 1, 1}, {3, 2});
  const auto [b, t, l, d] = session.run({{words, some}, {counts, ones}}, bags, total, linear, dense);
  require(b(0, 0) == 2 && b(1, 0) == 0 && b(2, 1) == 3, "bags");
  require(t(0) == 2 && l(0, 0) == 3, "total and linear");
  require(d(0, 1) == 1 && d(1, 0) == -1, "dense");
  require(again.values()(2) == 3, "again");
}

}  // namespace

int main() {
  examples();
  sequences();
  csv();
  bytes();
  texts();
  sparse();
}
