#include <dflow/graph/graph_def.hpp>

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/matmul.hpp>

#include "catch.hpp"
#include "graph/random_graph_def.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

#include <sys/stat.h>
#include <array>
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

}  // namespace

TEST_CASE("a GraphDef with every kind of attribute and every element type survives the binary form", "[graph_def]") {
  const GraphDef def = test::def_of_everything();
  CHECK(from_binary(to_binary(def)) == def);
}

TEST_CASE("random GraphDefs survive the binary form", "[graph_def]") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const GraphDef def = test::random_graph_def(seed);
    CHECK(from_binary(to_binary(def)) == def);
  }
}

TEST_CASE("an empty graph survives the binary form", "[graph_def]") {
  const GraphDef def = to_graph_def(Graph());
  CHECK(def.nodes.empty());
  CHECK(from_binary(to_binary(def)) == def);
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
  CHECK(std::string(newer.message()).find("version 3") != std::string::npos);
  CHECK(status_of([&] { return from_binary(std::string_view("PNG PNG PNG PNG")); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return from_binary(to_binary(GraphDef()) + "x"); }).code() == Code::data_loss);
}

TEST_CASE("a tensor of resource handles cannot be saved", "[graph_def]") {
  GraphDef def;
  std::array<std::byte, 16> memory{};
  def.nodes.emplace_back().attrs.emplace_back("a", AnyTensor::adopt(DType::resource, {}, memory.data(), 16, {}));
  CHECK(status_of([&] { return to_binary(def); }).code() == Code::invalid_argument);
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
  CHECK(def.nodes[2].file == "graph_def_test.cpp");
  const GraphDef placeless = without_places(def);
  CHECK(placeless.nodes[2].file.empty());
  CHECK(placeless.nodes[2].line == 0);
  CHECK(placeless.nodes[2].name == def.nodes[2].name);
  CHECK(to_binary(placeless).find("graph_def_test") == std::string::npos);
  CHECK(to_binary(def).find("/graph_def_test") == std::string::npos);
  CHECK(def.nodes[3].inputs == std::vector<std::string>{"^y"});
  CHECK(def.nodes[3].device == "/device:GPU:1");
  CHECK(def.nodes[3].colocated_with == "w");
  REQUIRE(def.collections.size() == 1);
  CHECK(def.collections[0] == std::pair<std::string, std::vector<std::string>>{"losses", {"y"}});
}

TEST_CASE("a graph is not waited for where others have put a pipe", "[graph_def]") {
  PosixFileSystem files;
  const testing::TemporaryFolder folder;
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(status_of([&] { return load_graph(files, folder.file("pipe")); }).code() == Code::failed_precondition);
}

TEST_CASE("graphs are saved to files in the form that the path names", "[graph_def]") {
  MemoryFileSystem files;
  const GraphDef def = test::random_graph_def(5);
  save_graph(files, "graph.dfg", def);
  CHECK(load_graph(files, "graph.dfg") == def);
  CHECK(files.read_file("graph.dfg").starts_with("dfGRAPH"));
  CHECK(status_of([&] { return load_graph(files, "none.json"); }).code() == Code::not_found);
  std::string damaged = files.read_file("graph.dfg");
  damaged.back() ^= 1;
  files.write_file_atomically("damaged.dfg", std::string_view(damaged));
  const Status status = status_of([&] { return load_graph(files, "damaged.dfg"); });
  CHECK(status.code() == Code::data_loss);
  CHECK(std::string(status.message()).starts_with("damaged.dfg: "));
  save_graph(files, "graph.json", def);
  CHECK(load_graph(files, "graph.json") == def);
  CHECK(files.read_file("graph.json").front() == '{');
  files.write_file_atomically("bad.json", std::string_view("{"));
  CHECK(std::string(status_of([&] { return load_graph(files, "bad.json"); }).message()).starts_with("bad.json: "));
  for (const char* path : {"lfs.dfg", "lfs.json"}) {
    files.write_file_atomically(path,
                                std::string_view("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"));
    const Status pointer = status_of([&] { return load_graph(files, path); });
    CHECK(pointer.code() == Code::invalid_argument);
    CHECK(mentions(pointer, str_cat(path, ": the file is a Git LFS pointer")));
  }
}
