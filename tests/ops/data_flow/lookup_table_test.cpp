#include <dflow/ops/data_flow/lookup_table.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/vectors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <atomic>
#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;
using dflow::testing::vector_of;

// The expectations were tried with TensorFlow 2.21's lookup ops: contents, defaults, and the code of each error.

namespace {

using Words = std::vector<std::string>;

std::shared_ptr<CpuDevice> device_with(const std::shared_ptr<FileSystem>& files) {
  auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{});
  set_device_files(device->context(), files);
  return device;
}

/// "key=value ..."
template <class K, class V>
std::string text_of(const Tensor<K>& keys, const Tensor<V>& values) {
  std::string text;
  for (std::int64_t i = 0; i < keys.dim(0); ++i) {
    if constexpr (std::is_same_v<K, std::string>) {
      text += keys(i) + "=";
    } else {
      text += std::to_string(keys(i)) + "=";
    }
    if constexpr (std::is_same_v<V, std::string>) {
      text += values(i) + " ";
    } else {
      text += str_cat(values(i), " ");
    }
  }
  return text;
}

/// A table of numbers by words, and the operations that a test runs on it.
struct Counts {
  explicit Counts(const std::shared_ptr<Device>& device = device_with(nullptr))
      : session(graph, SessionOptions{.devices = {device}}) {}

  void insert(const Words& at, const std::vector<std::int64_t>& to) {
    session.run({{keys, vector_of(at)}, {values, vector_of(to)}}, put);
  }
  void import(const Words& at, const std::vector<std::int64_t>& to) {
    session.run({{keys, vector_of(at)}, {values, vector_of(to)}}, replace);
  }
  void remove(const Words& at) { session.run({{keys, vector_of(at)}}, drop); }
  std::string content() {
    const auto& [k, v] = all;
    const auto [words, numbers] = session.run(k, v);
    return text_of(words, numbers);
  }

  Graph graph;
  MutableHashTable<std::string, std::int64_t> table{graph, {.name = "counts"}};
  Output<std::string> keys = placeholder<std::string>(graph, {dynamic});
  Output<std::int64_t> values = placeholder<std::int64_t>(graph, {dynamic});
  Operation put = table.insert(keys, values), drop = table.remove(keys), replace = table.import_all(keys, values);
  std::tuple<Output<std::string>, Output<std::int64_t>> all = table.export_all();
  Session session;
};

}  // namespace

TEST_CASE("A mutable table finds what was inserted, and the default for the rest") {
  Counts counts;
  counts.insert({"brain", "salad", "brain"}, {0, 1, 2});
  const auto found = counts.table.find(
      constant(counts.graph, Tensor<std::string>({3, 1}, {"brain", "surgery", "salad"})), Tensor<std::int64_t>(-1));
  CHECK(found.shape() == PartialShape({3, 1}));
  CHECK(bitwise_equal(counts.session.run(found), Tensor<std::int64_t>({3, 1}, {2, -1, 1})));
  CHECK(counts.session.run(counts.table.size()).scalar() == 2);
  counts.insert({"salad", "tank"}, {7, 8});
  CHECK(counts.content() == "brain=2 salad=7 tank=8 ");
  counts.remove({"brain", "unknown"});
  CHECK(counts.content() == "tank=8 salad=7 ");
  counts.insert({"brain"}, {9});
  CHECK(counts.content() == "tank=8 salad=7 brain=9 ");
  counts.import({"x", "y", "x"}, {1, 2, 5});
  CHECK(counts.content() == "x=5 y=2 ");
  counts.import({}, {});
  CHECK(counts.content().empty());
}

TEST_CASE("Values have any type and shape, and keys are int32, int64 or strings") {
  Graph graph;
  MutableHashTable<std::int32_t, std::string> words(graph, {.value_shape = {2}});
  MutableHashTable<std::int64_t, std::complex<float>> waves(graph);
  MutableHashTable<std::string, bool> flags(graph, {.value_shape = {0, 3}});
  const auto ids = constant(graph, Tensor<std::int32_t>({2}, {7, -1}));
  const auto put_words = words.insert(ids, constant(graph, Tensor<std::string>({2, 2}, {"a", "b", "c", "d"})));
  const auto key = constant(graph, Tensor<std::int64_t>(std::int64_t{1} << 40));
  const auto put_wave = waves.insert(key, constant(graph, std::complex<float>(1, 2)));
  const auto names = constant(graph, Tensor<std::string>({1}, {"x"}));
  const auto put_flag = flags.insert(names, constant(graph, Tensor<bool>(Shape({1, 0, 3}))));
  const auto found =
      words.find(constant(graph, Tensor<std::int32_t>({1, 3}, {-1, 8, 7})), Tensor<std::string>({2}, {"none", ""}));
  CHECK(found.shape() == PartialShape({1, 3, 2}));
  const auto wave = waves.find(key, Tensor<std::complex<float>>(std::complex<float>()));
  const auto flag = flags.find(names, Tensor<bool>(Shape({0, 3})));
  const auto [exported_keys, exported] = words.export_all();
  CHECK(exported.shape() == PartialShape({dynamic, 2}));
  Session session(graph);
  session.run(put_words);
  session.run(put_wave);
  session.run(put_flag);
  CHECK(bitwise_equal(session.run(found), Tensor<std::string>({1, 3, 2}, {"c", "d", "none", "", "a", "b"})));
  CHECK(session.run(wave).scalar() == std::complex<float>(1, 2));
  CHECK(session.run(flag).shape() == Shape({1, 0, 3}));
  CHECK(session.run(flags.size()).scalar() == 1);
  CHECK(session.run(exported)(1, 1) == "d");
}

TEST_CASE("A table does what a map does, over many random calls") {
  Counts counts;
  std::mt19937 random(5);
  std::map<std::string, std::int64_t> model;
  const auto found = counts.table.find(counts.keys, Tensor<std::int64_t>(-7));
  for (int round = 0; round < 400; ++round) {
    Words keys;
    std::vector<std::int64_t> values;
    for (unsigned i = random() % 6; i > 0; --i) {
      keys.push_back("a key that is longer than a short string " + std::to_string(random() % 40));
      values.push_back(static_cast<std::int64_t>(random() % 1000));
    }
    if (random() % 3 != 0) {
      counts.insert(keys, values);
      for (std::size_t i = 0; i < keys.size(); ++i) model[keys[i]] = values[i];
    } else {
      counts.remove(keys);
      for (const std::string& key : keys) model.erase(key);
    }
    const Tensor<std::int64_t> now = counts.session.run({{counts.keys, vector_of(keys)}}, found);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      REQUIRE(now.data()[i] == (model.contains(keys[i]) ? model[keys[i]] : -7));
    }
    REQUIRE(counts.session.run(counts.table.size()).scalar() == static_cast<std::int64_t>(model.size()));
  }
}

TEST_CASE("What does not fit a table is refused when it is built, or when it comes") {
  Graph graph;
  const MutableHashTable<std::string, float> table(graph, {.value_shape = {2}});
  const auto keys = placeholder<std::string>(graph, {3});
  const auto refused = [](auto&& build) { return error_of(build); };
  CHECK_THAT(refused([&] {
               static_cast<void>(table.insert(keys, placeholder<float>(graph, {3, 4})));
             }),
             Catch::Contains("wanted [3,2]") && Catch::Contains("lookup_table_test.cpp"));
  CHECK_THAT(refused([&] {
               static_cast<void>(table.import_all(keys, placeholder<float>(graph, {2, 2})));
             }),
             Catch::Contains("wanted [3,2]"));
  CHECK_THAT(refused([&] { static_cast<void>(table.find(keys, Tensor<float>(0.0f))); }),
             Catch::Contains("the default value has shape []"));
  CHECK_THAT(refused([&] {
               static_cast<void>(build<MutableHashTableOp>(
                   *graph.store(), {}, {.key_dtype = DType::float32, .value_dtype = DType::float32}));
             }),
             Catch::Contains("not float"));
  const HashTable<std::string, float> filled(graph);
  const auto square = placeholder<std::string>(graph, {2, 2});
  CHECK_THAT(refused([&] {
               static_cast<void>(filled.initialize(square, placeholder<float>(graph, {2, 2})));
             }),
             Catch::Contains("InitializeTable") && Catch::Contains("[2,2]"));
  CHECK_THAT(refused([&] { static_cast<void>(filled.initialize(square, placeholder<float>(graph))); }),
             Catch::Contains("InitializeTable") && Catch::Contains("[2,2]"));
  const HashTable<std::string, std::int64_t> numbered(graph);
  const auto names_of_files = placeholder<std::string>(graph, {1});
  CHECK_THAT(refused([&] { static_cast<void>(numbered.initialize_from_text_file(names_of_files)); }),
             Catch::Contains("InitializeTableFromTextFile") && Catch::Contains("[1]"));
  CHECK(table.size().shape() == PartialShape{});
  CHECK(std::get<0>(table.export_all()).shape() == PartialShape{dynamic});
  CHECK(std::get<1>(table.export_all()).shape() == PartialShape{dynamic, 2});
  const Operation wrong_key = build<LookupTableExport>({table.handle()}, {}, {}, type_args<std::int64_t, float>());
  const Operation wrong_value = build<LookupTableExport>({table.handle()}, {}, {}, type_args<std::string, double>());
  const auto any = placeholder<float>(graph, PartialShape::unknown());
  const auto put = table.insert(keys, any);
  const auto wrong_keys = build<LookupTableRemove>({table.handle(), constant(graph, 3)});
  Session session(graph);
  const Tensor<std::string> names({3}, {"a", "b", "c"});
  CHECK(code_of([&] {
          session.run({{keys, names}, {any, Tensor<float>(Shape({3, 3}))}}, put);
        }) == Code::invalid_argument);
  CHECK(code_of([&] {
          session.run({{keys, names}, {any, Tensor<float>(Shape({2, 2}))}}, put);
        }) == Code::invalid_argument);
  CHECK_THROWS_WITH(session.run(Operation(wrong_keys)), Catch::Contains("keys are int32"));
  CHECK_THROWS_WITH(session.run(wrong_key), Catch::Contains("has other element types than are taken out"));
  CHECK_THROWS_WITH(session.run(wrong_value), Catch::Contains("has other element types than are taken out"));
  CHECK(session.run(table.size()).scalar() == 0);
}

TEST_CASE("Tables of one shared name are one, over sessions on a device, and another kind is refused") {
  const auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{});
  Graph first, second;
  const LookupTableOptions both{.shared_name = "both"};
  const MutableHashTable<std::int64_t, float> one(first, both), same(second, both);
  const MutableHashTable<std::int64_t, double> other(second, both);
  const HashTable<std::int64_t, float> fixed(second, both);
  const auto key = [](Graph& graph) { return constant(graph, Tensor<std::int64_t>({1}, {3})); };
  const auto put = one.insert(key(first), constant(first, Tensor<float>({1}, {2.5f})));
  const auto found = same.find(key(second), Tensor<float>(0.0f));
  Session a(first, {.devices = {device}}), b(second, {.devices = {device}});
  a.run(put);
  CHECK(b.run(found)(0) == 2.5f);
  CHECK_THROWS_WITH(b.run(other.size()), Catch::Contains("keeps MutableHashTable 'both' (int64 to float[])") &&
                                             Catch::Contains("wanted MutableHashTable 'both' (int64 to double[])"));
  CHECK(code_of([&] { b.run(fixed.size()); }) == Code::invalid_argument);
}

TEST_CASE("A table is saved and restored with the variables") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Counts before(device_with(files)), after(device_with(files));
  before.insert({"a", "b", "c"}, {1, 2, 3});
  before.remove({"a"});
  train::Saver(before.graph, {.files = files}).save(before.session, "/m/t");
  after.insert({"other"}, {9});
  train::Saver(after.graph, {.files = files}).restore(after.session, "/m/t");
  CHECK(after.content() == "c=3 b=2 ");
}

TEST_CASE("A static table is filled once, by any number of sessions with the same") {
  Graph graph;
  const HashTable<std::string, std::int64_t> table(graph);
  const auto keys = placeholder<std::string>(graph, {dynamic});
  const auto values = placeholder<std::int64_t>(graph, {dynamic});
  const auto fill = table.initialize(keys, values);
  const auto found = table.find(keys, Tensor<std::int64_t>(-1));
  const auto [k, v] = table.export_all();
  const Operation insert = build<LookupTableInsert>({table.handle(), keys, values});
  const Operation import = build<LookupTableImport>({table.handle(), keys, values});
  Session session(graph);
  const auto with = [&](const Operation& what, const Words& at, const std::vector<std::int64_t>& to) {
    return code_of([&] { session.run({{keys, vector_of(at)}, {values, vector_of(to)}}, what); });
  };
  CHECK_THROWS_WITH(session.run({{keys, vector_of(Words{"a"})}}, found), Catch::Contains("not been initialized"));
  CHECK(code_of([&] { session.run({{keys, vector_of(Words{"a"})}}, found); }) == Code::failed_precondition);
  CHECK(code_of([&] { session.run(k); }) == Code::failed_precondition);
  CHECK(session.run(table.size()).scalar() == 0);
  CHECK(with(fill, {"a", "a"}, {1, 5}) == Code::failed_precondition);
  CHECK(session.run(table.size()).scalar() == 0);
  CHECK(with(fill, {"a", "a", "b"}, {1, 1, 5}) == Code::ok);
  CHECK(session.run(table.size()).scalar() == 2);
  CHECK(with(fill, {"b", "a"}, {5, 1}) == Code::ok);
  CHECK(with(import, {"a", "b"}, {1, 5}) == Code::ok);
  CHECK(with(fill, {"a", "b"}, {1, 6}) == Code::failed_precondition);
  CHECK(with(import, {"a"}, {1}) == Code::failed_precondition);
  CHECK(with(insert, {"c"}, {1}) == Code::unimplemented);
  CHECK(session.run({{keys, vector_of(Words{"b", "z"})}}, found)(0) == 5);
}

namespace {

/// The content of a table of words to numbers after it was filled from a file, or the error's text.
template <class K, class V>
std::string filled_from(const std::string& text, const InitializeTableFromTextFile::Attrs& attrs,
                        Code code = Code::invalid_argument) {
  const auto files = std::make_shared<MemoryFileSystem>();
  files->write_file_atomically("/words.txt", text);
  Graph graph;
  const HashTable<K, V> table(graph);
  const Operation fill = table.initialize_from_text_file("/words.txt", attrs);
  const auto [keys, values] = table.export_all();
  Session session(graph, {.devices = {device_with(files)}});
  const Status status = status_of([&] { session.run(fill); });
  if (!status.ok()) {
    CHECK(status.code() == code);
    CHECK(session.run(table.size()).scalar() == 0);
    return status.to_string();
  }
  session.run(fill);  // once more is the same
  const auto [k, v] = session.run(keys, values);
  return text_of(k, v);
}

constexpr std::int64_t line_number = InitializeTableFromTextFile::line_number;
constexpr std::int64_t whole_line = InitializeTableFromTextFile::whole_line;

}  // namespace

TEST_CASE("A static table is filled from the lines of a file, by line, number and column") {
  using Word = std::string;
  using Id = std::int64_t;
  CHECK(filled_from<Word, Id>("brain\nsalad\nsurgery\n", {}) == "brain=0 salad=1 surgery=2 ");
  CHECK(filled_from<Word, Id>("brain\r\nsalad", {}) == "brain=0 salad=1 ");
  CHECK(filled_from<Word, Id>("x\ny\n", {.offset = 5}) == "x=5 y=6 ");
  CHECK(filled_from<Id, Word>("x\ty\nz\n", {.key_index = line_number, .value_index = whole_line}) == "0=x\ty 1=z ");
  CHECK(filled_from<Word, float>("1\tx\t2.5\n2\ty\t-3e2\n", {.key_index = 1, .value_index = 2}) == "x=2.5 y=-300 ");
  CHECK(filled_from<std::int32_t, Word>("0 a b\n1 c d\n", {.key_index = 0, .value_index = 2, .delimiter = " "}) ==
        "0=b 1=d ");
  CHECK(filled_from<Word, Word>("a,\nb,x\n", {.key_index = 0, .value_index = 1, .delimiter = ","}) == "a= b=x ");
  CHECK(filled_from<Word, Id>("a\nb\nc\n", {.vocab_size = 2}) == "a=0 b=1 ");
  CHECK(filled_from<Word, Id>(std::string(300'000, 'x') + "\n" + std::string(70'000, 'y'), {}).size() == 370'006);
}

TEST_CASE("A file that is no table is refused by file and line, and the table stays empty") {
  using Word = std::string;
  using Id = std::int64_t;
  CHECK_THAT((filled_from<Word, Id>("a\n\nb\n", {})), Catch::Contains("/words.txt, line 2: it is empty"));
  CHECK_THAT((filled_from<Word, Id>("a\nb\nc\n", {.vocab_size = 4})), Catch::Contains("has 3 lines, wanted 4"));
  CHECK_THAT((filled_from<Word, Id>("1\tx\n2\n", {.key_index = 1, .value_index = 0})),
             Catch::Contains("line 2: it has 1 columns, wanted column 1"));
  CHECK_THAT((filled_from<Word, Id>("x\t1.5\n", {.key_index = 0, .value_index = 1})),
             Catch::Contains("line 1: '1.5' is no int64"));
  CHECK_THAT((filled_from<Word, std::int32_t>("x\t3000000000\n", {.key_index = 0, .value_index = 1})),
             Catch::Contains("is no int32"));
  CHECK_THAT((filled_from<Word, Id>("x\t1 2\n", {.key_index = 0, .value_index = 1})), Catch::Contains("is no int64"));
  CHECK_THAT((filled_from<Word, Id>("", {}, Code::out_of_range)), Catch::Contains("has no lines"));
  CHECK_THAT((filled_from<Word, Id>("x\ny\nx\n", {}, Code::failed_precondition)),
             Catch::Contains("/words.txt: entry 3 of 3 gives key 'x' a second, different value"));
  // As TensorFlow's initialiser from a file takes them.
  CHECK(filled_from<Word, Id>("a\t 1\nb\t2 \nc\t+3\n", {.key_index = 0, .value_index = 1}) == "a=1 b=2 c=3 ");
  CHECK(filled_from<Word, float>("x\tinf\n", {.key_index = 0, .value_index = 1}) == "x=inf ");
}

TEST_CASE("What a file cannot give is refused in the line that builds the operation") {
  Graph graph;
  const HashTable<std::string, float> table(graph);
  const HashTable<std::string, std::int64_t> ids(graph);
  const HashTable<std::string, std::int64_t> pairs(graph, {.value_shape = {2}});
  const HashTable<std::string, bool> flags(graph);
  const auto refused = [](auto&& build) { return error_of(build); };
  CHECK_THAT(refused([&] { static_cast<void>(table.initialize_from_text_file("f")); }),
             Catch::Contains("a line's number is an int64, not float") && Catch::Contains("lookup_table_test.cpp"));
  CHECK_THAT(refused([&] { static_cast<void>(table.initialize_from_text_file("f", {.value_index = whole_line})); }),
             Catch::Contains("a whole line is a string"));
  CHECK_THAT(refused([&] { static_cast<void>(flags.initialize_from_text_file("f", {.value_index = 1})); }),
             Catch::Contains("columns are int32"));
  CHECK_THAT(refused([&] { static_cast<void>(pairs.initialize_from_text_file("f")); }), Catch::Contains("scalars"));
  CHECK_THAT(refused([&] { static_cast<void>(ids.initialize_from_text_file("f", {.key_index = -3})); }),
             Catch::Contains("columns -3"));
  CHECK_THAT(refused([&] { static_cast<void>(ids.initialize_from_text_file("f", {.vocab_size = 0})); }),
             Catch::Contains("vocab_size"));
  CHECK_THAT(refused([&] { static_cast<void>(ids.initialize_from_text_file("f", {.delimiter = "ab"})); }),
             Catch::Contains("one character"));
  const auto fill = ids.initialize_from_text_file("/nowhere/words.txt");
  Session session(graph, {.devices = {device_with(std::make_shared<MemoryFileSystem>())}});
  CHECK(code_of([&] { session.run(fill); }) == Code::not_found);
}

TEST_CASE("Lookups and changes of one table at once see each call whole") {
  Graph graph;
  const MutableHashTable<std::int64_t, int> table(graph, {.value_shape = {2}});
  const auto keys = constant(graph, Tensor<std::int64_t>({3}, {1, 2, 3}));
  const auto value = placeholder<int>(graph, Shape{});
  const auto put = table.insert(keys, value + constant(graph, Tensor<int>({3, 2}, {0, 0, 0, 0, 0, 0})));
  const auto found = table.find(keys, Tensor<int>({2}, {0, 0}));
  Session session(graph, {.num_threads = 2});
  std::atomic<int> torn{0};
  {
    std::vector<std::jthread> threads;
    for (int who = 1; who <= 4; ++who) {
      threads.emplace_back([&, who] {
        for (int i = 0; i < 100; ++i) session.run({{value, who}}, put);
      });
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          const Tensor<int> now = session.run(found);
          for (const int one : now) torn += one != now.data()[0];
        }
      });
    }
  }
  CHECK(torn == 0);
}
