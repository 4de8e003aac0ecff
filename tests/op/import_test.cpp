#include <dflow/op/import.hpp>

#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/graph/graph_def_json.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/passes/prune.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

using namespace dflow;

namespace {

enum class Mode { slow, fast };
[[maybe_unused]] std::array<std::string_view, 2> attr_enum_names(Mode) { return {"SLOW", "FAST"}; }

struct OneOfEach : Op<"OneOfEach", FloatTypes, IntTypes> {
  struct Attrs {
    bool flag = true;
    std::int8_t small = 3;
    std::uint64_t seed = 5;
    float scale = 0.5f;
    double real = 0.25;
    std::string text = "default";
    Mode mode = Mode::fast;
    DType dtype = DType::int32;
    PartialShape shape{1};
    AnyTensor tensor;
  };
  using Inputs = In<T, List<U>>;
  static void infer(InferContext& context) { context.set_output(0, context.input(0)); }
};

struct Lists : Op<"Lists", FloatTypes> {
  struct Attrs {
    std::vector<bool> flags;
    std::vector<std::int64_t> integers{1, 2};
    std::vector<double> reals;
    std::vector<std::string> texts;
    std::vector<DType> dtypes;
    std::vector<PartialShape> shapes;
  };
  static void infer(InferContext& context) { context.set_output(0, context.input(0)); }
};

/// Definitions alone: an import makes no kernel.
template <class... Ops>
OpTable definitions() {
  static const auto sorted = [] {
    std::array<const OpDef*, sizeof...(Ops)> ops{&op_def<Ops>...};
    detail::sort_by_name(ops, [](const OpDef* op) { return op->name; });
    return ops;
  }();
  return {sorted, {}};
}

const OpTable& table() {
  static const OpTable ops = definitions<Const, Placeholder, Identity, NoOp, Add, MatMul, Reshape, Concat, Split,
                                         VariableOp, ReadVariable, Assign, OneOfEach, Lists>();
  return ops;
}

NodeDef node(std::string name, std::string op, std::vector<std::string> inputs = {}) {
  NodeDef def;
  def.name = std::move(name);
  def.op = std::move(op);
  def.inputs = std::move(inputs);
  if (def.op == "Placeholder" || def.op == "Variable") def.types = {{"dtype", DType::float32}};
  return def;
}

GraphDef def_of(std::vector<NodeDef> nodes) {
  GraphDef def;
  def.nodes = std::move(nodes);
  return def;
}

ImportOptions into(std::string prefix, std::string key, const AnyOutput& edge) {
  return {std::move(prefix), {{std::move(key), edge}}};
}

Graph sample_graph() {
  Graph graph({.seed = 11});
  const auto x = placeholder<float>(graph, {dynamic, 4}, {.name = "x"});
  const auto w = constant(graph, Tensor<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), {.name = "w"});
  const auto layer = graph.name_scope("layer");
  const auto y = matmul(x, w, {.transpose_a = false});
  {
    const auto device = graph.device("/job:ps/cpu:0");
    const auto after = graph.control_dependencies({y.operation(), x.operation()});
    const auto beside = graph.colocate_with(w);
    static_cast<void>(no_op(graph));
  }
  const AnyOutput parts = build<Split>({detail::int32_constant(*graph.store(), 1), y}, {.num_split = 2});
  const AnyOutput second(graph.store(), Endpoint{parts.node_id(), 1});
  const AnyOutput each = build<OneOfEach>({second, constant(graph, std::int64_t{1}), constant(graph, std::int64_t{2})},
                                          {.flag = false,
                                           .small = -128,
                                           .seed = ~std::uint64_t{0},
                                           .scale = 0.1f,
                                           .text = "t",
                                           .mode = Mode::slow,
                                           .tensor = w.node().attrs_as<Const>().value});
  static_cast<void>(build<Lists>({each}, {.flags = {true, false},
                                          .integers = {},
                                          .reals = {0.5},
                                          .texts = {"a", ""},
                                          .dtypes = {DType::float16},
                                          .shapes = {PartialShape::unknown()}}));
  graph.add_to_collection("outputs", each.operation());
  return graph;
}

}  // namespace

TEST_CASE("a graph is the same after export and import", "[import]") {
  const GraphDef def = to_graph_def(sample_graph());
  std::vector<GraphDef> all{def, from_binary(to_binary(def))};
  all.push_back(from_json(to_json(def)));
  for (const GraphDef& travelled : all) {
    const Graph graph = import_graph(travelled, table());
    CHECK(without_places(to_graph_def(graph)) == without_places(def));
    CHECK(graph.output("layer/MatMul").shape() == PartialShape{dynamic, 2});
    CHECK(graph.collection("outputs").at(0).name() == "layer/OneOfEach");
    CHECK(graph.seed() == 11);
  }
}

TEST_CASE("nodes may stand in any order", "[import]") {
  const GraphDef def = without_places(to_graph_def(sample_graph()));
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    GraphDef shuffled = def;
    std::shuffle(shuffled.nodes.begin(), shuffled.nodes.end(), std::mt19937(seed));
    const GraphDef back = without_places(to_graph_def(import_graph(shuffled, table())));
    REQUIRE(back.nodes.size() == def.nodes.size());
    for (const NodeDef& original : def.nodes) {
      CHECK(std::count(back.nodes.begin(), back.nodes.end(), original) == 1);
    }
  }
}

TEST_CASE("malformed graphs are InvalidArgument and name the node", "[import]") {
  struct Case {
    const char* node;
    const char* message;
    std::function<void(GraphDef&)> damage;
  };
  const auto add = [](NodeDef extra) { return [extra](GraphDef& def) { def.nodes.push_back(extra); }; };
  const auto with_attr = [](NodeDef extra, const char* name, AttrValue value) {
    extra.attrs.emplace_back(name, std::move(value));
    return extra;
  };
  const auto with_device = [](NodeDef extra, const char* device) { return extra.device = device, extra; };
  const auto with_types = [](NodeDef extra, std::vector<std::pair<std::string, DType>> types) {
    return extra.types = std::move(types), extra;
  };
  const auto beside = [](NodeDef extra, const char* other) { return extra.colocated_with = other, extra; };
  const NodeDef each = node("n", "OneOfEach", {"x", "i"});
  const std::vector<Case> cases{
      {"", "version 3", [](GraphDef& def) { def.version = 3; }},
      {"", "version 0", [](GraphDef& def) { def.version = 0; }},
      {"n", "no op 'Nonsense'", add(node("n", "Nonsense"))},
      {"n", "no op ''", add(node("n", ""))},
      {"", "not a legal node name", add(node("", "NoOp"))},
      {"a b", "not a legal node name", add(node("a b", "NoOp"))},
      {"a:1", "not a legal node name", add(node("a:1", "NoOp"))},
      {"/a", "not a legal node name", add(node("/a", "NoOp"))},
      {"x", "two nodes are named 'x'", add(node("x", "NoOp"))},
      {"n", "input 'missing' is not", add(node("n", "Identity", {"missing"}))},
      {"n", "control input 'missing' is not", add(node("n", "NoOp", {"^missing"}))},
      {"n", "is no edge", add(node("n", "Identity", {""}))},
      {"n", "is no edge", add(node("n", "Identity", {"^"}))},
      {"n", "is no edge", add(node("n", "Identity", {"x:"}))},
      {"n", "is no edge", add(node("n", "Identity", {"x:-1"}))},
      {"n", "is no edge", add(node("n", "Identity", {"x:99999999999"}))},
      {"n", "is no edge", add(node("n", "Identity", {":0"}))},
      {"n", "'x:1' does not exist", add(node("n", "Identity", {"x:1"}))},
      {"n", "'nothing:0' does not exist", add(node("n", "Identity", {"nothing"}))},
      {"n", "takes 1 inputs, got 0", add(node("n", "Identity"))},
      {"n", "takes 2 inputs, got 3", add(node("n", "Add", {"x", "x", "x"}))},
      {"n", "at least 1 inputs", add(node("n", "OneOfEach"))},
      {"n", "input 1 is int32 where T = float", add(node("n", "Add", {"x", "i"}))},
      {"n", "is not defined for", add(node("n", "OneOfEach", {"i", "i"}))},
      {"n", "must be resource", add(node("n", "ReadVariable", {"x"}))},
      {"n", "not decided", add(node("n", "OneOfEach", {"x"}))},
      {"n", "has no type parameter 'S'", add(with_types(node("n", "Identity", {"x"}), {{"S", DType::float32}}))},
      {"n", "is given twice",
       add(with_types(node("n", "Identity", {"x"}), {{"T", DType::float32}, {"T", DType::float32}}))},
      {"n", "is int32 where T = float", add(with_types(node("n", "Identity", {"i"}), {{"T", DType::float32}}))},
      {"n", "no element type's number", add(with_types(node("n", "Identity", {"x"}), {{"T", static_cast<DType>(77)}}))},
      {"n", "no element type's number", add(with_types(node("n", "Identity", {"x"}), {{"T", DType::invalid}}))},
      {"n", "is not defined for", add(with_types(node("n", "Placeholder"), {{"dtype", DType::qint8}}))},
      {"n", "has no attribute 'colour'", add(with_attr(each, "colour", true))},
      {"n", "must be bool, got int", add(with_attr(each, "flag", std::int64_t{1}))},
      {"n", "cannot hold 128", add(with_attr(each, "small", std::int64_t{128}))},
      {"n", "cannot hold 1e+39", add(with_attr(each, "scale", 1e39))},
      {"n", "none of SLOW, FAST", add(with_attr(each, "mode", std::string("MEDIUM")))},
      {"n", "no element type's number", add(with_attr(each, "dtype", static_cast<DType>(24)))},
      {"n", "must be float, got none", add(with_attr(each, "real", std::monostate()))},
      {"n", "attribute 'flag' is given twice", add(with_attr(with_attr(each, "flag", true), "flag", true))},
      {"n", "needs a value", add(with_types(node("n", "Const"), {{"dtype", DType::float32}}))},
      {"n", "",
       add(with_types(with_attr(node("n", "Const"), "value", AnyTensor(Tensor<float>(1.0f))),
                      {{"dtype", DType::int32}}))},
      {"n", "device name", add(with_device(node("n", "NoOp"), "cpu"))},
      {"n", "device name", add(with_device(node("n", "NoOp"), "/cpu:0/cpu:1"))},
      {"n", "colocate with, 'missing'", add(beside(node("n", "NoOp"), "missing"))},
      {"n", "on a cycle", add(beside(node("n", "NoOp"), "n"))},
      {"n", "on a cycle", add(node("n", "Identity", {"n"}))},
      {"n", "on a cycle", add(node("n", "NoOp", {"^n"}))},
      {"", "collection 'c'",
       [](GraphDef& def) { def.collections.emplace_back("c", std::vector<std::string>{"missing"}); }},
      {"n", "cannot have -1 outputs", add(with_attr(node("n", "Split", {"i", "x"}), "num_split", std::int64_t{-1}))},
      {"n", "outputs in lists", add(with_attr(node("n", "Split", {"i", "x"}), "num_split", std::int64_t{1} << 40))},
  };
  for (const Case& malformed : cases) {
    GraphDef def = def_of({node("x", "Placeholder"), node("i", "Placeholder"), node("nothing", "NoOp")});
    def.nodes[1].types = {{"dtype", DType::int32}};
    malformed.damage(def);
    def.nodes.back().file = "model.cpp";
    def.nodes.back().line = 12;
    const Status status = status_of([&] { return import_graph(def, table()); });
    INFO(malformed.node << ": " << malformed.message << "\n" << status.to_string());
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.node() == malformed.node);
    CHECK(std::string(status.message()).find(malformed.message) != std::string::npos);
    if (!status.node().empty()) {
      CHECK(status.op() == def.nodes.back().op);
      CHECK(std::string(status.message()).find("model.cpp:12") != std::string::npos);
    }
    CHECK(std::string(status.where().file_name()).ends_with("import_test.cpp"));
  }
}

TEST_CASE("the node named in the error of a cycle is on it", "[import]") {
  const GraphDef def =
      def_of({node("after", "Identity", {"c"}), node("a", "Identity", {"c"}), node("b", "Identity", {"a"}),
              node("c", "Add", {"b", "x"}), node("x", "Placeholder"), node("later", "Identity", {"after"})});
  const Status status = status_of([&] { return import_graph(def, table()); });
  CHECK((status.node() == "a" || status.node() == "b" || status.node() == "c"));
}

TEST_CASE("an import is limited in nodes and outputs", "[import]") {
  const GraphDef def = def_of({node("a", "NoOp"), node("b", "NoOp")});
  const auto at_most = [](std::size_t nodes) {
    ImportOptions options;
    options.max_nodes = nodes;
    return options;
  };
  CHECK(status_of([&] { return import_graph(def, table(), at_most(1)); }).code() == Code::invalid_argument);
  CHECK(import_graph(def, table(), at_most(2)).num_nodes() == 2);
  NodeDef long_name = node(std::string(4097, 'n'), "NoOp");
  CHECK(status_of([&] { return import_graph(def_of({long_name}), table()); }).code() == Code::invalid_argument);
}

TEST_CASE("a graph is imported into another one under a prefix, joined by an input map", "[import]") {
  Graph graph;
  const auto images = placeholder<float>(graph, {5, 4}, {.name = "x"});
  const auto pair = build<Split>({detail::int32_constant(*graph.store(), 0), images}, {.num_split = 5});
  const GraphDef def =
      def_of({node("x", "Placeholder"), node("y", "Add", {"x", "x:0"}), node("z", "Identity", {"q:3", "^x"})});
  const ImportOptions options{"copy", {{"x", images}, {"q:3", pair.output(3)}}};
  for (const char* prefix : {"copy", "copy_1"}) {
    const std::vector<Operation> operations = import_graph_into(graph, def, table(), options);
    REQUIRE(operations.size() == 3);
    CHECK(operations[1].name() == std::string(prefix) + "/y");
    CHECK(graph.output(std::string(prefix) + "/y").shape() == PartialShape{5, 4});
    CHECK(operations[1].node().inputs[0] == images.endpoint());
    CHECK(operations[2].node().inputs[0] == pair.output(3).endpoint());
    CHECK(operations[2].node().control_inputs == std::vector<NodeId>{operations[0].node_id()});
  }
}

TEST_CASE("a graph that is imported as it grows becomes the one that it is", "[import]") {
  Graph graph({.seed = 4}), copy({.seed = 4});
  std::size_t known = 0;
  const auto follow = [&] {
    const GraphDef grown = to_graph_def(*graph.store(), known);
    CHECK(grown.nodes.size() == graph.num_nodes() - known);
    CHECK(import_graph_into(copy, grown, standard_op_table(), {.goes_on = true}).size() == grown.nodes.size());
    known = graph.num_nodes();
    // All but the lines, which are the import's.
    const auto nodes_of = [](const Graph& of) {
      std::vector<NodeDef> nodes = to_graph_def(*of.store(), 0).nodes;
      for (NodeDef& node : nodes) node.file.clear(), node.line = 0;
      return nodes;
    };
    CHECK(nodes_of(copy) == nodes_of(graph));
  };
  const auto x = constant(graph, Tensor<float>({2}, {1, 2}));
  const Operation first = no_op(graph);
  follow();
  follow();  // by nothing
  const auto y = [&] {
    const auto after = graph.control_dependencies({first});
    const auto beside = graph.colocate_with(x);
    return x + x;
  }();
  follow();
  static_cast<void>(concat(0, {x, y, x}));
  follow();
  CHECK(to_graph_def(*graph.store(), graph.num_nodes() + 1).nodes.empty());
}

TEST_CASE("what a graph has already cannot come again, and what it has not is missed", "[import]") {
  Graph graph;
  static_cast<void>(constant(graph, 1.0f, {.name = "x"}));
  const auto error = [&](const std::string& name, const std::string& input, const std::string& beside) {
    GraphDef def;
    def.nodes.emplace_back();
    def.nodes[0].name = name;
    def.nodes[0].op = "Neg";
    def.nodes[0].inputs = {input};
    def.nodes[0].colocated_with = beside;
    return status_of([&] { import_graph_into(graph, def, standard_op_table(), {.goes_on = true}); });
  };
  CHECK(mentions(error("x", "x", ""), "the graph has a node 'x' already"));
  CHECK(mentions(error("y", "z", ""), "'z'"));
  CHECK(mentions(error("y", "x:1", ""), "does not exist"));
  CHECK(mentions(error("y", "^z", ""), "'z'"));
  CHECK(mentions(error("y", "x", "z"), "'z'"));
  CHECK(error("y", "y", "").code() == Code::invalid_argument);  // a cycle
  CHECK(graph.num_nodes() == 1);
  CHECK(error("y", "x", "x").ok());
  CHECK(graph.num_nodes() == 2);
}

TEST_CASE("imported nodes stand in the scopes around the import", "[import]") {
  Graph graph;
  const auto first = no_op(graph, {.name = "first"});
  const auto scope = graph.name_scope("model");
  const auto device = graph.device("/job:ps/task:1");
  const auto after = graph.control_dependencies({first});
  NodeDef placed = node("a", "NoOp");
  placed.device = "/task:2/cpu:0";
  const Operation a = import_graph_into(graph, def_of({placed}), table(), {"p", {}}).at(0);
  CHECK(a.name() == "model/p/a");
  CHECK(a.node().device == "/job:ps/task:2/device:CPU:0");
  CHECK(a.node().control_inputs == std::vector<NodeId>{first.node_id()});
}

TEST_CASE("an imported node that stands beside another one does not take the device scope around the import",
          "[import]") {
  Graph graph;
  const auto device = graph.device("/job:worker/cpu:1");
  NodeDef w = node("w", "Variable"), read = node("read", "ReadVariable", {"w"}), pinned = node("pinned", "NoOp");
  w.device = "/job:ps";
  read.types = {{"dtype", DType::float32}};
  read.colocated_with = pinned.colocated_with = "w";
  pinned.device = "/cpu:0";
  const std::vector<Operation> built = import_graph_into(graph, def_of({w, read, pinned}), table());
  CHECK(built[0].node().device == "/job:ps/device:CPU:1");
  CHECK(built[1].node().device.empty());
  CHECK(built[1].node().colocated_with == built[0].node_id());
  CHECK(built[2].node().device == "/device:CPU:0");
}

TEST_CASE("nobody sees a node of an import that fails", "[import]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}, {.name = "x"});
  const std::uint64_t version = graph.version();
  CHECK_THROWS_AS(import_graph_into(graph, def_of({node("a", "NoOp"), node("b", "Add", {"a", "a"})}), table()), Error);
  CHECK(graph.version() == version);
  CHECK_FALSE(graph.find("a").is_valid());
  CHECK(import_graph_into(graph, def_of({node("a", "NoOp")}), table()).at(0).node_id() == x.node_id() + 1);
}

TEST_CASE("a failed import leaves the graph as it was", "[import]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}, {.name = "x"});
  GraphDef def =
      def_of({node("a", "NoOp"), node("b", "Identity", {"x"}), node("c", "Add", {"b", "i"}), node("i", "Placeholder")});
  def.nodes[3].types = {{"dtype", DType::int32}};
  def.collections = {{"all", {"a"}}};
  const GraphDef before = to_graph_def(graph);
  CHECK(status_of([&] { return import_graph_into(graph, def, table(), into("p", "x", x)); }).node() == "c");
  CHECK(to_graph_def(graph) == before);
  CHECK_FALSE(graph.find("p/a").is_valid());
  def.nodes[3].types = {{"dtype", DType::float32}};
  CHECK(import_graph_into(graph, def, table(), into("p", "x", x)).at(0).name() == "p/a");

  Graph other;
  const auto stranger = placeholder<float>(other);
  for (const auto& [key, edge] :
       std::vector<std::pair<std::string, AnyOutput>>{{"x", stranger}, {"x", {}}, {"", x}, {"unused", x}}) {
    CHECK(status_of([&, &key = key, &edge = edge] {
            return import_graph_into(graph, def, table(), into("q", key, edge));
          }).code() == Code::invalid_argument);
  }
}

TEST_CASE("random ops built after an import draw seeds of their own", "[import]") {
  Graph built({.seed = 3});
  static_cast<void>(no_op(built));
  const std::uint64_t first = next_op_seed(*built.store(), 0);
  const Graph loaded = import_graph(to_graph_def(built), table());
  CHECK(next_op_seed(*loaded.store(), 0) != first);
}

TEST_CASE("200,000 nodes and a chain of 100,000 are imported and pruned without recursion", "[import]") {
  constexpr int chain = 100'000;
  GraphDef def = def_of({node("n0", "Placeholder")});
  for (int i = 1; i < chain; ++i)
    def.nodes.push_back(node("n" + std::to_string(i), "Identity", {"n" + std::to_string(i - 1)}));
  for (int i = 0; i < chain; ++i)
    def.nodes.push_back(node("m" + std::to_string(i), "Add", {"n0", "n" + std::to_string(i)}));
  std::reverse(def.nodes.begin(), def.nodes.end());
  const Graph graph = import_graph(from_binary(to_binary(def)), table());
  REQUIRE(graph.num_nodes() == 2 * chain);
  const Endpoint last = graph.output("n" + std::to_string(chain - 1)).endpoint();
  CHECK(prune(*graph.store(), {}, std::span(&last, 1), {}).nodes.size() == chain);
  def.nodes.back() = node("n0", "Identity", {"n" + std::to_string(chain - 1)});
  CHECK(std::string(status_of([&] { return import_graph(def, table()); }).message()).find("on a cycle") !=
        std::string::npos);
}

TEST_CASE("random damage to a graph fails cleanly or imports", "[import]") {
  const GraphDef def = to_graph_def(sample_graph());
  std::mt19937 random(9);
  const auto pick = [&](auto& items) -> auto& { return items[random() % items.size()]; };
  int imported = 0;
  for (int i = 0; i < 5'000; ++i) {
    GraphDef damaged = def;
    for (int k = 0; k < 1 + i % 3; ++k) {
      NodeDef& target = pick(damaged.nodes);
      const NodeDef& donor = def.nodes[random() % def.nodes.size()];
      switch (random() % 9) {
        case 0:
          target.op = donor.op;
          break;
        case 1:
          target.inputs = donor.inputs;
          break;
        case 2:
          target.attrs = donor.attrs;
          break;
        case 3:
          target.types = donor.types;
          break;
        case 4:
          target.name = donor.name;
          break;
        case 5:
          target.colocated_with = donor.name;
          break;
        case 6:
          target.inputs.push_back(donor.name + ":" + std::to_string(random() % 3));
          break;
        case 7:
          if (!target.inputs.empty()) pick(target.inputs) = donor.name;
          break;
        default:
          std::swap(target, pick(damaged.nodes));
          break;
      }
    }
    const Status status = status_of([&] { return import_graph(damaged, table()); });
    REQUIRE((status.ok() || status.code() == Code::invalid_argument));
    imported += status.ok() ? 1 : 0;
  }
  CHECK(imported > 50);
}

TEST_CASE("an input that is mapped to an empty edge, or one of another graph, is told", "[import]") {
  Graph graph;
  const GraphDef def = def_of({node("y", "Identity", {"x"})});
  const auto error = [&](const AnyOutput& edge) {
    return status_of([&] { return import_graph_into(graph, def, table(), {"copy", {{"x", edge}}}); });
  };
  CHECK(mentions(error(AnyOutput()), "'x' is mapped to an empty Output"));
  Graph other;
  CHECK(mentions(error(placeholder<float>(other, {})), "'x' is mapped to another graph"));
}
