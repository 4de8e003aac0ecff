#include <dflow/graph/graph_def.hpp>

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/graph/json_text.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/matmul.hpp>

#include "catch.hpp"
#include "errors.hpp"
#include "graph/random_graph_def.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

using namespace dflow;
using namespace std::string_literals;

namespace {

std::string rebuilt_checksum(std::string bytes) {
  const std::uint32_t crc = mask_crc32c(crc32c(std::string_view(bytes).substr(12)));
  for (int i = 0; i < 4; ++i) bytes[static_cast<std::size_t>(8 + i)] = static_cast<char>(crc >> (8 * i));
  return bytes;
}

/// A small JSON graph whose only node has these attributes.
std::string json_with_attrs(const std::string& attrs) {
  return R"({"version": 1, "seed": 0, "nodes": [{"name": "n", "op": "O", "attrs": )" + attrs +
         R"(}], "collections": []})";
}

}  // namespace

TEST_CASE("a GraphDef with every kind of attribute and every element type survives the binary form", "[graph_def]") {
  const GraphDef def = test::def_of_everything();
  CHECK(from_binary(to_binary(def)) == def);
}

TEST_CASE("a GraphDef with every kind of attribute and every element type survives the JSON form", "[graph_def]") {
  const GraphDef def = test::def_of_everything();
  const std::string text = to_json(def);
  const GraphDef back = from_json(text);
  REQUIRE(back.nodes.size() == def.nodes.size());
  for (std::size_t i = 0; i < def.nodes.size(); ++i) {
    for (std::size_t k = 0; k < def.nodes[i].attrs.size(); ++k) {
      INFO(def.nodes[i].attrs[k].first);
      CHECK(attr_equal(back.nodes[i].attrs.at(k).second, def.nodes[i].attrs[k].second));
    }
  }
  CHECK(back == def);
  CHECK(to_json(back) == text);
}

TEST_CASE("random GraphDefs survive both forms", "[graph_def]") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const GraphDef def = test::random_graph_def(seed);
    CHECK(from_binary(to_binary(def)) == def);
    CHECK(from_json(to_json(def)) == def);
  }
}

TEST_CASE("an empty graph survives both forms", "[graph_def]") {
  const GraphDef def = to_graph_def(Graph());
  CHECK(def.nodes.empty());
  CHECK(from_binary(to_binary(def)) == def);
  CHECK(from_json(to_json(def)) == def);
}

TEST_CASE("JSON reads well", "[graph_def]") {
  GraphDef def;
  NodeDef& node = def.nodes.emplace_back();
  node.name = "layer1/y";
  node.op = "MatMul";
  node.types = {{"T", DType::float32}};
  node.inputs = {"x", "w:1", "^init"};
  node.attrs = {{"transpose_b", true},
                {"shape", PartialShape{dynamic, 784}},
                {"value", AnyTensor(Tensor<float>({3}, {1.5f, -2, 0}))}};
  const std::string text = to_json(def);
  for (const char* expected :
       {R"("inputs": ["x", "w:1", "^init"])", R"("types": {"T": "float"})", R"("transpose_b": {"bool": true})",
        R"("shape": {"shape": "[?,784]"})", R"("values": [1.5, -2.0, 0.0])"}) {
    INFO(text);
    CHECK(text.find(expected) != std::string::npos);
  }
}

TEST_CASE("a person's JSON may leave out what is empty and order members freely", "[graph_def]") {
  const GraphDef def =
      from_json(R"({"collections": [], "nodes": [{"op": "NoOp", "name": "a"}, {"inputs": ["^a"], "name": "b",
      "op": "NoOp", "attrs": {"x": {"int": -9223372036854775808}}}], "seed": 18446744073709551615, "version": 1})");
  REQUIRE(def.nodes.size() == 2);
  CHECK(def.seed == std::numeric_limits<std::uint64_t>::max());
  CHECK(def.nodes[1].inputs == std::vector<std::string>{"^a"});
  CHECK(std::get<std::int64_t>(def.nodes[1].attrs.at(0).second) == std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("a zero in a JSON graph is zero whatever its decimals and exponent", "[graph_def]") {
  const std::string decimals(40, '0');
  for (const std::string& zero :
       {std::string("0e-30"), std::string("0E+400"), "0." + decimals, "0." + decimals + "e9"}) {
    CAPTURE(zero);
    const std::string head =
        R"json({"nodes": [{"op": "NoOp", "name": "\\\"0e-30", "attrs": {"x": {"list(float)": [)json";
    const GraphDef def =
        from_json(head + zero + ",-" + zero + R"json(, 0.5]}}}], "collections": [], "seed": 0, "version": 1})json");
    const auto& reals = std::get<std::vector<double>>(def.nodes.at(0).attrs.at(0).second);
    CHECK(reals == std::vector<double>{0.0, -0.0, 0.5});
    CHECK(std::signbit(reals.at(1)));
    CHECK(def.nodes[0].name == "\\\"0e-30");
  }
}

TEST_CASE("a real in a JSON graph is the nearest double however many digits it has", "[graph_def]") {
  // 2^64 - 1 and one digit more: a reader of 64-bit significands rounds it up to nothing.
  const std::string reals =
      "184467440737095516155, 18446744073709551616, -18446744073709551615, 0.1000000000000000055511151231257827, "
      "9007199254740993.0000000000000000000000000001, 4.9e-324, 1.7976931348623157e308";
  const GraphDef def = from_json(R"json({"nodes": [{"op": "NoOp", "name": "a", "attrs": {"x": {"list(float)": [)json" +
                                 reals + R"json(]}}}], "collections": [], "seed": 0, "version": 1})json");
  CHECK(std::get<std::vector<double>>(def.nodes.at(0).attrs.at(0).second) ==
        std::vector<double>{184467440737095516155.0, 0x1p64, -0x1p64, 0.1, 9007199254740994.0,
                            std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()});
}

TEST_CASE("a JSON graph may leave seed and collections out and has its members in any order", "[graph_def]") {
  const GraphDef def = from_json(R"({"nodes": [{"op": "NoOp", "name": "a"}], "version": 1})");
  CHECK(def.nodes.size() == 1);
  CHECK(def.seed == 0);
  CHECK(def.collections.empty());
  const GraphDef other =
      from_json(R"({"collections": [{"nodes": ["a"], "name": "kept"}], "seed": 7, "nodes": [], "version": 1})");
  CHECK(other.seed == 7);
  CHECK(other.collections.at(0).second == std::vector<std::string>{"a"});
}

TEST_CASE("malformed JSON graphs are InvalidArgument and say why", "[graph_def]") {
  struct Case {
    std::string text;
    const char* message;
  };
  const std::string deep(100'000, '[');
  const std::vector<Case> cases{
      {"", "line 1"},
      {"{", "line 1"},
      {"[]", "version"},
      {"3", ""},
      {"{}", "version"},
      {deep, "nested deeper"},
      {R"({"version": 1, "seed": 0, "nodes": [],})", "expected '\"'"},
      {R"({"version": 1, "seed": 0, "nodes": []} x)", "more after"},
      {R"({"version": 1, "seed": 0, "collections": []})", "there is no 'nodes'"},
      {R"({"nodes": []})", "there is no 'version'"},
      {R"({"version": 1, "nodes": [], "nodes": []})", "line 1: a graph has one 'nodes'"},
      {"{\"version\": 1,\n \"seed\": 0, \n\n \"nodess\": []}", "line 4: a graph has no 'nodess'"},
      {"{\"version\": 1,\n \"nodes\": [{\"name\":\n \"a, \\\"{\"}],\n \"sed\": 1}", "line 4: a graph has no 'sed'"},
      {"{\"version\": 1, \"nodes\": [],\n \"seed\": \"x\"}", "line 2: "},
      {"{\"version\": 1, \"nodes\": [],\n \"collections\": [\n{}, {\"nmae\": \"a\"}]}",
       "line 2, collection 1: a collection has no 'nmae'"},
      {R"({"version": 2, "seed": 0, "nodes": [], "collections": []})", "version 2"},
      {R"({"version": 0, "seed": 0, "nodes": [], "collections": []})", "version 0"},
      {R"({"version": -1, "seed": 0, "nodes": [], "collections": []})", ""},
      {R"({"version": "1", "seed": 0, "nodes": [], "collections": []})", ""},
      {R"({"version": 1, "seed": 0.5, "nodes": [], "collections": []})", ""},
      {R"({"version": 1, "seed": 184467440737095516155, "nodes": [], "collections": []})", ""},
      {R"({"version": 1, "seed": 1e309, "nodes": [], "collections": []})", "range of double"},
      {R"({"version": 1, "seed": 0, "nodes": {}, "collections": []})", ""},
      {R"({"version": 1, "seed": 0, "nodes": [[]], "collections": []})", "object"},
      {R"({"version": 1, "seed": 0, "nodes": [7], "collections": []})", "node 0"},
      {R"({"version": 1, "seed": 0, "nodes": [{"nmae": "a"}], "collections": []})", "'nmae'"},
      {R"({"version": 1, "seed": 0, "nodes": [{"name": "a", "types": {"T": "floot"}}], "collections": []})", "'floot'"},
      {R"({"version": 1, "seed": 0, "nodes": [{"name": "a", "inputs": [1]}], "collections": []})", "node 0 'a'"},
      {"{\"version\": 1, \"seed\": 0, \"nodes\": [{\"name\": \"a\\u0000b\"}], \"collections\": []}", "zero character"},
      {"{\"version\": 1, \"seed\": 0, \"nodes\": [{\"name\": \"\xff\"}], \"collections\": []}", "UTF-8"},
      {R"({"version": 1, "seed": 0, "nodes": [{"name": "base64:?"}], "collections": []})", "base64"},
      {json_with_attrs("[]"), "object"},
      {json_with_attrs(R"({"a": {}})"), "no value"},
      {json_with_attrs(R"({"a": {"int": 1, "bool": true}})"), "one value"},
      {json_with_attrs(R"({"a": {"integer": 1}})"), "'integer'"},
      {json_with_attrs(R"({"a": {"int": 1.5}})"), ""},
      {json_with_attrs(R"({"a": {"int": 9223372036854775808}})"), ""},
      {json_with_attrs(R"({"a": {"float": "x"}})"), ""},
      {json_with_attrs(R"({"a": {"float": 1e999}})"), ""},
      {json_with_attrs(R"({"a": {"float": NaN}})"), "expected a value"},
      {json_with_attrs(R"({"a": {"float_text": "x"}})"), "'x'"},
      {json_with_attrs(R"({"a": {"shape": "[1,]"}})"), "not a shape"},
      {json_with_attrs(R"({"a": {"shape": "[1,-2]"}})"), "not a shape"},
      {json_with_attrs(R"({"a": {"shape": "[1,2,3,4,5,6,7,8,9]"}})"), "not a shape"},
      {json_with_attrs(R"j({"a": {"list(int)": 3}})j"), ""},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "shape": "[2]", "values": [1]}}})"), "1 values"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "shape": "[2]"}}})"), "no values"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "shape": "[?]", "values": [1]}}})"), ""},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "resource", "shape": "[]", "values": [1]}}})"), ""},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "uint8", "shape": "[1]", "values": [256]}}})"), ""},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "shape": "[1]", "values": [1e300]}}})"), "range"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "bool", "shape": "[4]", "base64": "AAECAw=="}}})"), "boolean"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "int8", "shape": "[4]", "base64": "AAEC"}}})"), "3 bytes"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "shape": "[9223372036854775807]", "values": []}}})"),
       "0 values"},
  };
  for (const Case& malformed : cases) {
    const Status status = status_of([&] { return from_json(malformed.text); });
    INFO(malformed.text.substr(0, 200) << "\n" << status.to_string());
    CHECK(status.code() == Code::invalid_argument);
    CHECK(std::string(status.message()).find(malformed.message) != std::string::npos);
  }
}

TEST_CASE("every truncation of a saved graph fails cleanly", "[graph_def]") {
  const std::string binary = to_binary(test::def_of_everything(false));
  for (std::size_t size = 0; size < binary.size(); ++size) {
    REQUIRE(status_of([&] { return from_binary(std::string_view(binary).substr(0, size)); }).code() == Code::data_loss);
    if (size < 24) continue;
    // Past the checksum, the reader itself must notice.
    const std::string cut = rebuilt_checksum(binary.substr(0, size));
    REQUIRE(status_of([&] { return from_binary(cut); }).code() == Code::data_loss);
  }
  const std::string text = to_json(test::random_graph_def(1));
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    REQUIRE(status_of([&] { return from_json(std::string_view(text).substr(0, size)); }).code() ==
            Code::invalid_argument);
  }
}

TEST_CASE("every damaged byte of a saved graph is noticed", "[graph_def]") {
  const std::string binary = to_binary(test::def_of_everything(false));
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = binary;
    char& byte = damaged[random() % damaged.size()];
    byte = static_cast<char>(i % 2 == 0 ? byte ^ (1 << (random() % 8)) : random());
    if (damaged == binary) continue;
    const Code code = status_of([&] { return from_binary(damaged); }).code();
    REQUIRE((code == Code::data_loss || code == Code::invalid_argument));
  }
}

TEST_CASE("damage behind a right checksum fails cleanly or loads as some graph", "[graph_def]") {
  const std::string binary = to_binary(test::def_of_everything(false));
  std::mt19937 random(2);
  int loaded = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = binary;
    char& byte = damaged[12 + random() % (damaged.size() - 12)];
    byte = static_cast<char>(i % 2 == 0 ? byte ^ (1 << (random() % 8)) : random());
    damaged = rebuilt_checksum(std::move(damaged));
    GraphDef def;
    const Status status = status_of([&] { return def = from_binary(damaged), 0; });
    if (!status.ok()) {
      REQUIRE((status.code() == Code::data_loss || status.code() == Code::invalid_argument ||
               status.code() == Code::out_of_range));
    } else if (++loaded % 100 == 0) {
      REQUIRE(from_binary(to_binary(def)) == def);
    }
  }
  CHECK(loaded > 0);
}

TEST_CASE("a damaged JSON graph fails cleanly or loads as some graph", "[graph_def]") {
  const std::string text = to_json(test::random_graph_def(3));
  std::mt19937 random(3);
  for (int i = 0; i < 5'000; ++i) {
    std::string damaged = text;
    damaged[random() % damaged.size()] = static_cast<char>(i % 2 == 0 ? random() : " {}[]\",:-.0e9tn\\"[random() % 16]);
    const Code code = status_of([&] { return from_json(damaged); }).code();
    REQUIRE((code == Code::ok || code == Code::invalid_argument));
  }
}

TEST_CASE("counts that nothing follows allocate nothing", "[graph_def]") {
  std::string bytes = "dfGRAPH\n"s + std::string(4, '\0') + "\x01\0\0\0"s + std::string(8, '\0');
  const std::string announced = bytes + "\xff\xff\xff\x1f"s;  // 2^26-1 nodes
  CHECK(status_of([&] { return from_binary(rebuilt_checksum(announced)); }).code() == Code::data_loss);
  const std::string too_many = bytes + "\xff\xff\xff\xff\x7f"s;
  CHECK(status_of([&] { return from_binary(rebuilt_checksum(too_many)); }).code() == Code::out_of_range);
}

TEST_CASE("a newer version and other files are InvalidArgument", "[graph_def]") {
  GraphDef def;
  def.version = GraphDef::current_version + 1;
  const Status newer = status_of([&] { return from_binary(to_binary(def)); });
  CHECK(newer.code() == Code::invalid_argument);
  CHECK(std::string(newer.message()).find("version 2") != std::string::npos);
  CHECK(status_of([&] { return from_json(to_json(def)); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return from_binary(std::string_view("PNG PNG PNG PNG")); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return from_binary(to_binary(GraphDef()) + "x"); }).code() == Code::data_loss);
}

TEST_CASE("a tensor of resource handles cannot be saved", "[graph_def]") {
  GraphDef def;
  std::array<std::byte, 16> memory{};
  def.nodes.emplace_back().attrs.emplace_back("a", AnyTensor::adopt(DType::resource, {}, memory.data(), 16, {}));
  CHECK(status_of([&] { return to_binary(def); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return to_json(def); }).code() == Code::invalid_argument);
}

TEST_CASE("a graph becomes a GraphDef in the order it was built", "[graph_def]") {
  Graph graph({.seed = 7});
  const auto x = placeholder<float>(graph, {dynamic, 3}, {.name = "x"});
  const auto w = constant(graph, Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}), {.name = "w"});
  const int line = __LINE__ + 1;
  const auto y = matmul(x, w, {.transpose_b = true}, {.name = "y"});
  {
    const auto after = graph.control_dependencies({y.operation()});
    const auto beside = graph.colocate_with(w);
    const auto device = graph.device("/gpu:1");
    static_cast<void>(no_op(graph, {.name = "done"}));
  }
  graph.add_to_collection("losses", y.operation());
  const GraphDef def = to_graph_def(graph);
  CHECK(def.seed == 7);
  REQUIRE(def.nodes.size() == 4);
  CHECK(def.nodes[0].types == std::vector<std::pair<std::string, DType>>{{"dtype", DType::float32}});
  REQUIRE(def.nodes[2].attrs.size() == 1);  // the defaults are left out
  CHECK(def.nodes[2].attrs[0].first == "transpose_b");
  CHECK(def.nodes[2].inputs == std::vector<std::string>{"x", "w"});
  CHECK(def.nodes[2].line == static_cast<std::uint32_t>(line));
  CHECK(def.nodes[2].file.ends_with("graph_def_test.cpp"));
  CHECK(def.nodes[3].inputs == std::vector<std::string>{"^y"});
  CHECK(def.nodes[3].device == "/device:GPU:1");
  CHECK(def.nodes[3].colocated_with == "w");
  REQUIRE(def.collections.size() == 1);
  CHECK(def.collections[0] == std::pair<std::string, std::vector<std::string>>{"losses", {"y"}});
}

TEST_CASE("graphs are saved to files in the form that the path names", "[graph_def]") {
  MemoryFileSystem files;
  const GraphDef def = test::random_graph_def(5);
  for (const char* path : {"graph.json", "graph.dfg"}) {
    save_graph(files, path, def);
    CHECK(load_graph(files, path) == def);
  }
  CHECK(files.read_file("graph.json").front() == '{');
  CHECK(files.read_file("graph.dfg").starts_with("dfGRAPH"));
  files.write_file_atomically("bad.json", std::string_view("{"));
  CHECK(std::string(status_of([&] { return load_graph(files, "bad.json"); }).message()).starts_with("bad.json: "));
  CHECK(status_of([&] { return load_graph(files, "none.json"); }).code() == Code::not_found);
}

TEST_CASE("base64, reals and shapes as text read back", "[graph_def]") {
  std::mt19937 random(4);
  for (std::size_t size = 0; size < 70; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    CHECK(json::from_base64(json::to_base64(std::as_bytes(std::span(bytes)))) == bytes);
    CHECK(json::unquote(json::quote(bytes)) == bytes);
  }
  CHECK(json::to_base64(std::as_bytes(std::span("foobar", 4))) == "Zm9vYg==");
  for (const char* malformed : {"Zg", "Zg=", "Z===", "Zh==", "Zm9=", "Zg==Zg==", "Z g="})
    CHECK(!json::from_base64(malformed));
  for (const std::uint64_t bits :
       std::array<std::uint64_t, 8>{0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001, 0x7ff0000000000000,
                                    0xfff0000000000000, 0x8000000000000000, 0x3fb999999999999a, 1}) {
    const double value = std::bit_cast<double>(bits);
    CHECK(std::bit_cast<std::uint64_t>(json::real_from_text(json::real_to_text(value))) == bits);
  }
  for (const char* malformed : {"", "infinity", "nan(0x0)", "nan(0x7ff8000000000000", "1 ", "1e999", "0x10", "NaN"}) {
    CHECK(status_of([&] { return json::real_from_text(malformed); }).code() == Code::invalid_argument);
  }
  for (const PartialShape& shape :
       {PartialShape{}, PartialShape{3}, PartialShape{dynamic, 0, 5}, PartialShape::unknown()}) {
    CHECK(json::shape_from_text(shape.to_string()) == shape);
  }
}

TEST_CASE("only valid UTF-8 is UTF-8", "[graph_def]") {
  for (const char* valid : {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    CHECK(json::is_utf8(valid));
  for (const char* invalid : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                              "\xf8\x88\x80\x80\x80", "\xe2\x82", "\xe2\x28\xa1", "\xff"}) {
    CHECK_FALSE(json::is_utf8(invalid));
  }
}
