#include <dflow/graph/graph_def_json.hpp>

#include <dflow/graph/graph_def_archive.hpp>

#include "catch.hpp"
#include "graph/random_graph_def.hpp"
#include "support/errors.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace dflow;
using namespace std::string_literals;

namespace {

/// A small JSON graph of one node with the given attributes.
std::string json_with_attrs(const std::string& attrs) {
  return R"({"version": 1, "seed": 0, "nodes": [{"name": "n", "op": "O", "attrs": )" + attrs +
         R"(}], "collections": []})";
}

}  // namespace

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

TEST_CASE("random GraphDefs survive the JSON form", "[graph_def]") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const GraphDef def = test::random_graph_def(seed);
    CHECK(from_json(to_json(def)) == def);
  }
}

TEST_CASE("an empty graph survives the JSON form", "[graph_def]") {
  const GraphDef def = to_graph_def(Graph());
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
  // 2^64 - 1 and one digit more: a reader with 64-bit significands rounds it up to nothing.
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

TEST_CASE("what may come twice in a GraphDef stands twice in its JSON form", "[graph_def]") {
  const GraphDef def = from_json(json_with_attrs(R"({"a": {"int": 1}, "b": {"int": 2}, "a": {"int": 3}})"));
  REQUIRE(def.nodes.at(0).attrs.size() == 3);
  CHECK(def.nodes[0].attrs[2].first == "a");
  CHECK(attr_equal(def.nodes[0].attrs[2].second, std::int64_t{3}));
  CHECK(from_json(to_json(def)) == def);
}

TEST_CASE("a tensor in a JSON graph has its members in any order", "[graph_def]") {
  const GraphDef def =
      from_json(json_with_attrs(R"({"a": {"tensor": {"values": [1, 2.5], "shape": "[2]", "dtype": "double"}}})"));
  CHECK(attr_equal(def.nodes.at(0).attrs.at(0).second, AnyTensor(Tensor<double>({2}, {1, 2.5}))));
}

TEST_CASE("a JSON graph is read in time that grows with its length, many members or not", "[graph_def]") {
  std::string attrs = "{";
  constexpr std::size_t count = 100'000;  // a search for each name among all names would take minutes
  for (std::size_t i = 0; i < count; ++i) attrs += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"bool":true})";
  const GraphDef def = from_json(json_with_attrs(attrs + "}"));
  CHECK(def.nodes.at(0).attrs.size() == count);
  CHECK(from_json(to_json(def)) == def);
}

TEST_CASE("text that is UTF-8 stands as it is in a JSON graph, and other bytes as base64", "[graph_def]") {
  const auto written = [](const std::string& name) {
    GraphDef def;
    def.nodes.emplace_back().name = name;
    const std::string text = to_json(def);
    CHECK(from_json(text) == def);
    const std::string before = R"("name": ")";
    const std::size_t from = text.find(before) + before.size();
    return text.substr(from, text.find('"', from) - from);
  };
  for (const char* valid : {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(written(valid) == valid);
  }
  CHECK(written("a\0b"s) == "a\\u0000b");
  for (const char* other : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                            "\xf8\x88\x80\x80\x80", "\xe2\x82", "\xe2\x28\xa1", "\xff", "base64:", "base64:?"}) {
    CHECK(written(other).starts_with("base64:"));
  }
}

TEST_CASE("reals and shapes are spelled in a JSON graph so that they read back", "[graph_def]") {
  const auto read = [](const std::string& kind, const std::string& text) {
    return from_json(json_with_attrs(str_cat(R"({"a": {")", kind, R"(": ")", text, R"("}})")))
        .nodes.at(0)
        .attrs.at(0)
        .second;
  };
  const auto bits = [&](const std::string& text) {
    return std::bit_cast<std::uint64_t>(std::get<double>(read("float_text", text)));
  };
  CHECK(bits("nan") == 0x7ff8000000000000);
  CHECK(bits("nan(0x7ff0000000000001)") == 0x7ff0000000000001);
  CHECK(bits("inf") == 0x7ff0000000000000);
  CHECK(bits("-inf") == 0xfff0000000000000);
  CHECK(bits("-0") == 0x8000000000000000);
  CHECK(bits("0.1") == 0x3fb999999999999a);
  CHECK(bits("4.9e-324") == 1);
  for (const char* malformed : {"", "infinity", "nan(0x0)", "nan(0x7ff8000000000000", "1 ", "1e999", "0x10", "NaN"}) {
    INFO(malformed);
    CHECK(code_of([&] { return read("float_text", malformed); }) == Code::invalid_argument);
  }
  for (const PartialShape& shape :
       {PartialShape{}, PartialShape{3}, PartialShape{dynamic, 0, 5}, PartialShape::unknown()}) {
    CHECK(attr_equal(read("shape", shape.to_string()), shape));
  }
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
      {"[]", "an object is due"},
      {"3", "an object is due, not 3"},
      {"{}", "version"},
      {deep, "nested deeper"},
      {R"({"version": 1, "seed": 0, "nodes": [],})", "line 1, offset 38: a name in quotes is due"},
      {R"({"version": 1, "seed": 0, "nodes": []} x)", "line 1, offset 39: the text goes on after its value"},
      {R"({"version": 1, "seed": 0, "collections": []})", "there is no 'nodes'"},
      {R"({"nodes": []})", "there is no 'version'"},
      {R"({"version": 1, "nodes": [], "nodes": []})", "a graph has one 'nodes'"},
      {"{\"version\": 1,\n \"seed\": 0, \n\n \"nodess\": []}", "a graph has no 'nodess'"},
      {"{\"version\": 1,\n \"nodes\": [{\"name\":\n \"a, \\\"{\"}],\n 1}",
       "line 4, offset 49: a name in quotes is due"},
      {"{\"version\": 1,\n \"nodes\": [],\n \"seed\": 1e999}", "seed: an integer is due, not 1e999"},
      {R"({"version": 1, "nodes": []})" + "\0{}"s, "zero byte"},
      {"{\"version\": 1, \"nodes\": [],\n \"seed\": \"x\"}", "seed: an integer is due, not \"x\""},
      {"{\"version\": 1, \"nodes\": [],\n \"collections\": [\n{}, {\"nmae\": \"a\"}]}",
       "collections: item 1: a collection has no 'nmae'"},
      {R"({"version": 3, "seed": 0, "nodes": [], "collections": []})", "version 3"},
      {R"({"version": 0, "seed": 0, "nodes": [], "collections": []})", "version 0"},
      {R"({"version": -1, "seed": 0, "nodes": [], "collections": []})", ""},
      {R"({"version": "1", "seed": 0, "nodes": [], "collections": []})", ""},
      {R"({"version": 1, "seed": 0.5, "nodes": [], "collections": []})", "seed: an integer is due, not 0.5"},
      {R"({"version": 1, "seed": 184467440737095516155, "nodes": [], "collections": []})",
       "seed: 184467440737095516155 is out of range"},
      {R"({"version": 1, "seed": 1e309, "nodes": [], "collections": []})", "seed: an integer is due, not 1e309"},
      {R"({"version": 1, "seed": 0, "nodes": {}, "collections": []})", "a list is due, not object"},
      {R"({"version": 1, "seed": 0, "nodes": [[]], "collections": []})", "object"},
      {R"({"version": 1, "seed": 0, "nodes": [7], "collections": []})", "node 0"},
      {R"({"version": 1, "nodes": [{"name": "a", "op": "NoOp"}, {}]})", "node 1 '': there is no 'name'"},
      {R"({"version": 1, "nodes": [{"name": "a"}]})", "node 0 'a': there is no 'op'"},
      {R"({"version": 1, "seed": 0, "nodes": [{"nmae": "a"}], "collections": []})", "'nmae'"},
      {R"({"version": 1, "seed": 0, "nodes": [{"name": "a", "types": {"T": "floot"}}], "collections": []})", "'floot'"},
      {R"({"version": 1, "seed": 0, "nodes": [{"name": "a", "inputs": [1]}], "collections": []})",
       "node 0 'a': inputs: item 0: a text is due, not 1"},
      {R"({"version": 1, "seed": 0, "nodes": [{"name": "\ud800"}], "collections": []})", "surrogate"},
      {"{\"version\": 1, \"seed\": 0, \"nodes\": [{\"name\": \"\xff\"}], \"collections\": []}", "UTF-8"},
      {R"({"version": 1, "seed": 0, "nodes": [{"name": "base64:?"}], "collections": []})", "base64"},
      {json_with_attrs("[]"), "object"},
      {json_with_attrs(R"({"a": {}})"), "node 0 'n': attrs: a: an attribute has one value, not 0"},
      {json_with_attrs(R"({"a": {"int": 1, "bool": true}})"), "one value"},
      {json_with_attrs(R"({"a": {"integer": 1}})"), "'integer'"},
      {json_with_attrs(R"({"a": {"int": 1.5}})"), ""},
      {json_with_attrs(R"({"a": {"int": 9223372036854775808}})"), "9223372036854775808 is out of range"},
      {json_with_attrs(R"({"a": {"float": "x"}})"), ""},
      {json_with_attrs(R"({"a": {"float": 1e999}})"), "1e999 is out of range"},
      {json_with_attrs(R"({"a": {"float": NaN}})"), "line 1, offset 86: a value is due"},
      {json_with_attrs(R"({"a": {"float_text": "x"}})"), "'x'"},
      {json_with_attrs(R"({"a": {"shape": "[1,]"}})"), "not a shape"},
      {json_with_attrs(R"({"a": {"shape": "[1,-2]"}})"), "not a shape"},
      {json_with_attrs(R"({"a": {"shape": "[1,2,3,4,5,6,7,8,9]"}})"), "not a shape"},
      {json_with_attrs(R"j({"a": {"list(int)": 3}})j"), ""},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "shape": "[2]", "values": [1]}}})"), "1 values"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "shape": "[2]"}}})"), "no values"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "shape": "[?]", "values": [1]}}})"), ""},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "resource", "shape": "[]", "values": [1]}}})"), ""},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "uint8", "shape": "[1]", "values": [256]}}})"),
       "256 is out of range"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "shape": "[1]", "values": [1e300]}}})"), "range"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "values": [1]}}})"), "element type and shape"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "float", "shape": "[1]", "values": [1], "base64": ""}}})"),
       "once"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "int32", "shape": "[1]", "values_text": ["1"]}}})"), "only reals"},
      {json_with_attrs(R"({"a": {"tensor": {"dtype": "string", "shape": "[0]", "base64": ""}}})"), "no 'base64'"},
      {json_with_attrs(R"({"a": {"function": {"name": "f", "name": "f"}}})"), "a function has one 'name'"},
      {json_with_attrs(R"({"a": {"function": {}}})"), "there is no 'name'"},
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

TEST_CASE("every truncation of a JSON graph fails cleanly", "[graph_def]") {
  const std::string text = to_json(test::random_graph_def(1));
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    REQUIRE(status_of([&] { return from_json(std::string_view(text).substr(0, size)); }).code() ==
            Code::invalid_argument);
  }
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

TEST_CASE("a newer version of a JSON graph is InvalidArgument", "[graph_def]") {
  GraphDef def;
  def.version = GraphDef::current_version + 1;
  const Status newer = status_of([&] { return from_json(to_json(def)); });
  CHECK(newer.code() == Code::invalid_argument);
  CHECK(mentions(newer, "version 3"));
}

TEST_CASE("a tensor of resource handles cannot be saved as JSON", "[graph_def]") {
  GraphDef def;
  std::array<std::byte, 16> memory{};
  def.nodes.emplace_back().attrs.emplace_back("a", AnyTensor::adopt(DType::resource, {}, memory.data(), 16, {}));
  CHECK(status_of([&] { return to_json(def); }).code() == Code::invalid_argument);
}
