#include <dflow/kernels/shared/send_recv_kernel.hpp>

#include "catch.hpp"

#include <dflow/graph/graph_def.hpp>
#include <dflow/op/import.hpp>
#include <dflow/session/session.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

NodeDef node(std::string name, std::string op, std::vector<std::string> inputs = {}) {
  NodeDef def;
  def.name = std::move(name);
  def.op = std::move(op);
  def.inputs = std::move(inputs);
  return def;
}

/// Sends a fed x of any shape, receives it as y, and computes -y.
struct SentAs {
  SentAs(DType sent, DType received, const PartialShape& shape) {
    NodeDef x = node("x", "Placeholder"), send = node("send", "_Send", {"x"}), recv = node("y", "_Recv");
    x.types = {{"dtype", sent}};
    x.attrs = {{"shape", PartialShape::unknown()}};
    send.types = {{"T", sent}};
    send.attrs = {{"tensor_name", std::string("x")}};
    recv.types = {{"tensor_type", received}};
    recv.attrs = {{"tensor_name", std::string("x")}, {"shape", shape}};
    GraphDef def;
    def.nodes = {x, send, recv, node("minus", "Neg", {"y"})};
    graph = import_graph(def, standard_op_table());
  }

  AnyTensor run(const AnyTensor& value) {
    Session session(graph, {.num_threads = 1});
    return session.run({{graph.output("x"), value}}, graph.output("minus"), graph.find("send"));
  }

  Graph graph;
};

/// The error's text, or an empty string.
std::string refusal(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("A tensor arrives if it is what the graph says") {
  SentAs fits(DType::float32, DType::float32, PartialShape{dynamic, 2});
  CHECK(fits.run(Tensor<float>({1, 2}, {3, 4})).span<float>()[1] == -4);
}

TEST_CASE("A tensor of another element type than the graph says is not received") {
  SentAs wider(DType::int8, DType::float64, PartialShape::unknown());
  const std::string said = refusal([&] { wider.run(Tensor<std::int8_t>::full({64}, 1)); });
  CHECK_THAT(said, Catch::Matchers::Contains("int8") && Catch::Matchers::Contains("double") &&
                       Catch::Matchers::Contains("node 'y'"));
}

TEST_CASE("A tensor of another shape than the graph says is not received") {
  SentAs fixed(DType::float32, DType::float32, PartialShape{dynamic, 2});
  const std::string said = refusal([&] { fixed.run(Tensor<float>({3}, {1, 2, 3})); });
  CHECK_THAT(said, Catch::Matchers::Contains("[3]") && Catch::Matchers::Contains("[?,2]"));
  CHECK(fixed.run(Tensor<float>({2, 2}, {1, 2, 3, 4})).span<float>()[3] == -4);
}
