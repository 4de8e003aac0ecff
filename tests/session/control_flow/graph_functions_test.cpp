// Graphs that become functions of others, and functions of graphs that are read.
#include <dflow/dflow.hpp>
#include "catch.hpp"
#include "support/control_flow_forms.hpp"
#include "support/errors.hpp"
namespace df = dflow;

TEST_CASE("a graph becomes a function of another one, by its edges, with functions and loops of its own") {
  df::Graph source;
  const auto a = df::placeholder<float>(source, {}, {.name = "a"}),
             b = df::placeholder<float>(source, {}, {.name = "b"});
  const auto twice = df::function(source, "twice", [](df::Output<float> x) { return x * 2.0f; });
  const auto grown = df::while_loop([&](auto v) { return v < b; }, [&](auto v) { return twice(v); }, a);
  const auto result = grown * a;

  df::Graph graph;
  const auto f = df::function(graph, "grow", [&](df::Output<float> x, df::Output<float> limit) {
    return df::merge(graph, source, {.prefix = "body", .input_map = df::EdgeMap().add(a, x).add(b, limit)})(result);
  });
  const auto x = df::placeholder<float>(graph, {});
  const auto y = f(x, df::constant(graph, 100.0f)) + f(x + 1.0f, df::constant(graph, 10.0f));
  const auto gx = df::gradients(y, x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  // 3 * 2^6 = 192 and 4 * 2^2 = 16. The value is 192 * 3 + 16 * 4, with the slopes 2 * 64 * 3 and 2 * 4 * 4.
  const auto [value, slope] = session.run({{x, df::Tensor<float>(3.0f)}}, y, gx);
  CHECK(value.scalar() == 192 * 3 + 16 * 4);
  CHECK(slope.scalar() == 2 * 64 * 3 + 2 * 4 * 4);
}

TEST_CASE("a graph with variables becomes no function") {
  df::Graph source, graph;
  const auto a = df::placeholder<float>(source, {});
  df::Variable<float> w(source, df::Tensor<float>(2.0f));
  const auto result = a * w;
  const auto code = code_of([&] {
    df::function(graph, "f", [&](df::Output<float> x) {
      return df::merge(graph, source, {.prefix = "body", .input_map = df::EdgeMap().add(a, x)})(result);
    });
  });
  CHECK(code == df::Code::invalid_argument);
  const auto x = df::placeholder<float>(graph, {});
  CHECK(df::Session(graph).run({{x, df::Tensor<float>(2.0f)}}, x + 1.0f).scalar() == 3);
}

TEST_CASE("functions that are nested too deep, and arguments of absurd numbers, are refused where a graph is read") {
  const auto imports = [](int depth, std::int64_t number) {
    df::GraphDef def;
    def.version = df::GraphDef::current_version;
    std::string around;
    for (int i = 0; i < depth; ++i) {
      df::NodeDef begin;
      begin.op = "Function";
      begin.name = "f" + std::to_string(i);
      begin.function = around;
      around = begin.name;
      def.nodes.push_back(begin);
    }
    df::NodeDef argument;
    argument.op = "FunctionArgument";
    argument.name = "argument";
    argument.function = around;
    argument.types.emplace_back("dtype", df::DType::float32);
    argument.attrs = {{"number", number}};
    def.nodes.push_back(argument);
    return code_of([&] { df::import_graph(def, df::standard_op_table()); });
  };
  CHECK(imports(3, 0) == df::Code::ok);
  CHECK(imports(256, 200) == df::Code::ok);
  CHECK(imports(300, 0) == df::Code::resource_exhausted);
  CHECK(imports(1, 65535) == df::Code::invalid_argument);
  CHECK(imports(1, -1) == df::Code::invalid_argument);
}
