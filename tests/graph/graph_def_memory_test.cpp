#include <dflow/graph/graph_def_archive.hpp>

#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/graph/graph_def_json.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/failing_new.hpp"

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

using namespace dflow;

namespace {

constexpr std::size_t most_shapes = GraphDef::max_listed_shapes;

/// A graph of one node. Each attribute is a list of unknown shapes; `sizes` gives the lengths of the lists.
GraphDef with_shape_lists(const std::vector<std::size_t>& sizes) {
  GraphDef def;
  NodeDef& node = def.nodes.emplace_back();
  for (const std::size_t size : sizes) {
    node.attrs.emplace_back("shapes", std::vector<PartialShape>(size, PartialShape::unknown()));
  }
  return def;
}

/// The binary form of the same graph with one list, made without the library.
std::string bytes_with_shapes(std::size_t count) {
  std::string body;
  ByteWriter writer(body);
  writer.u32(1);
  writer.u64(0);
  writer.count(1);
  for (int text = 0; text < 3; ++text) writer.string("");  // name, op, device
  for (int list = 0; list < 2; ++list) writer.count(0);    // types, inputs
  writer.count(1);
  writer.string("shapes");
  writer.u8(static_cast<std::uint8_t>(AttrKind::shape_list));
  writer.count(count);
  body.append(count, '\x01');                              // -1: the rank is unknown
  for (int text = 0; text < 2; ++text) writer.string("");  // colocation, file
  writer.varint(0);
  writer.count(0);
  std::string bytes = "dfGRAPH\n";
  ByteWriter(bytes).u32(mask_crc32c(crc32c(body)));
  return bytes + body;
}

}  // namespace

TEST_CASE("lists of shapes take the memory of so many shapes, up to the limit, and nothing beyond it", "[graph_def]") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, most_shapes}) {
    const std::string bytes = bytes_with_shapes(count);
    CHECK(bytes == to_binary(with_shape_lists({count})));
    const std::size_t before = failing_new::num_bytes;
    const GraphDef def = from_binary(bytes);
    CHECK(failing_new::num_bytes - before <= count * sizeof(PartialShape) + 4096);
    CHECK(def == with_shape_lists({count}));
  }
  const std::string too_many = bytes_with_shapes(most_shapes + 1);
  const std::size_t before = failing_new::num_bytes;
  const Status status = status_of([&] { return from_binary(too_many); });
  CHECK(failing_new::num_bytes - before <= 4096);
  CHECK(status.code() == Code::out_of_range);
  CHECK(mentions(status, "more than 1000000 shapes"));
}

TEST_CASE("the limit of listed shapes is that of all lists of a graph, and none beyond it is written", "[graph_def]") {
  const GraphDef most = with_shape_lists({most_shapes - 1, 1});
  CHECK(from_binary(to_binary(most)) == most);
  CHECK(code_of([] { return to_binary(with_shape_lists({most_shapes - 1, 2})); }) == Code::out_of_range);
  CHECK(code_of([] { return to_binary(with_shape_lists({most_shapes + 1})); }) == Code::out_of_range);
}

TEST_CASE("as many shapes are read from lists in JSON, and written there", "[graph_def]") {
  const auto json_with_shapes = [](std::size_t count) {
    std::string text = R"json({"version": 1, "nodes": [{"name": "x", "op": "X", "attrs": {"s": {"list(shape)": [)json";
    for (std::size_t i = 0; i < count; ++i) text += i == 0 ? "\"[]\"" : ",\"[]\"";
    return text + "]}}}]}";
  };
  const std::string few = json_with_shapes(3), too_many = json_with_shapes(most_shapes + 1);
  CHECK(std::get<std::vector<PartialShape>>(from_json(few).nodes.at(0).attrs.at(0).second).size() == 3);
  const Status status = status_of([&] { return from_json(too_many); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(mentions(status, "more than 1000000 shapes"));
  CHECK(code_of([] { return to_json(with_shape_lists({most_shapes - 1, 2})); }) == Code::out_of_range);
}

TEST_CASE("a graph that lists far more than it says of what it lists is refused before it takes the memory",
          "[graph_def]") {
  const std::size_t count = std::size_t{1} << 22;
  const int what = GENERATE(0, 1, 3);  // nodes, inputs, attributes
  std::string body;
  ByteWriter writer(body);
  writer.u32(1);
  writer.u64(0);
  writer.count(what == 0 ? count : 1);
  if (what == 0) {
    body.append(count * 9, '\0');  // nothing is said of any node
  } else {
    for (int text = 0; text < 3; ++text) writer.string("");
    writer.count(0);  // types
    if (what == 1) writer.count(count), body.append(count, '\0');
    if (what != 1) writer.count(0);
    if (what == 3) writer.count(count), body.append(2 * count, '\0');
    if (what != 3) writer.count(0);
    for (int text = 0; text < 2; ++text) writer.string("");
    writer.varint(0);
  }
  writer.count(0);
  std::string bytes = "dfGRAPH\n";
  ByteWriter(bytes).u32(mask_crc32c(crc32c(body)));
  bytes += body;
  const std::size_t before = failing_new::num_bytes;
  const Status status = status_of([&] { return from_binary(bytes); });
  CHECK(status.code() == Code::out_of_range);
  CHECK(mentions(status, "lists far more"));
  CHECK(failing_new::num_bytes - before <= 4 * GraphDef::memory_for(bytes.size()));  // a list moves as it grows
}
