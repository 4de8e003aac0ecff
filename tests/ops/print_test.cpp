#include <dflow/ops/control/print.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <complex>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

using namespace dflow;

// The lines equal the lines of tf.raw_ops.Print of TensorFlow 2.21.0, except for complex numbers: TensorFlow writes
// '?'.

namespace {

/// The text that `f` writes to the standard error stream.
template <class F>
std::string written_by(F f) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  f();
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

/// The line that a step writes of one tensor.
std::string line_of(const AnyTensor& tensor, std::int64_t summarize = 3) {
  Graph graph;
  const auto y = print(constant(graph, 1.0f), {constant(graph, tensor)}, {}, {.summarize = summarize});
  Session session(graph);
  return written_by([&] { CHECK(session.run(y).scalar() == 1.0f); });
}

}  // namespace

TEST_CASE("tensors are printed in rows, as many elements as asked for", "[print]") {
  const Tensor<std::int32_t> square({2, 2}, {1, 2, 3, 4});
  CHECK(line_of(square) == "[[1 2][3...]...]\n");
  CHECK(line_of(square, -1) == "[[1 2][3 4]]\n");
  CHECK(line_of(square, 10) == "[[1 2][3 4]]\n");
  CHECK(line_of(Tensor<std::int32_t>({2, 2, 1}, {1, 2, 3, 4})) == "[[[1][2]][[3]]...]\n");
  CHECK(line_of(Tensor<std::int32_t>({2}, {1, 2}), 0) == "[...]\n");
  CHECK(line_of(Tensor<float>(Shape{2, 0})) == "[]\n");
  CHECK(line_of(Tensor<double>::zeros({2, 3, 4}), 5) == "[[[0 0 0 0][0...]]...]\n");
}

TEST_CASE("elements of each type are printed", "[print]") {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(line_of(Tensor<float>({9}, {1.5f, 2, 1e10f, nan, infinity, 0.1f, 1.0f / 3, 1e-10f, 123456789.0f}), 20) ==
        "[1.5 2 1e+10 nan inf 0.1 0.333333343 1e-10 123456792]\n");
  CHECK(line_of(Tensor<double>({2}, {-std::numeric_limits<double>::quiet_NaN(), -1})) == "[nan -1]\n");
  CHECK(line_of(Tensor<Half>({1}, {Half(-nan)})) == "[nan]\n");
  CHECK(line_of(Tensor<double>({2}, {1.0 / 3, 0.1})) == "[0.33333333333333331 0.1]\n");
  CHECK(line_of(Tensor<Half>({1}, {Half(0.1f)})) == "[0.0999755859]\n");
  CHECK(line_of(Tensor<BFloat16>({1}, {BFloat16(0.1f)})) == "[0.100097656]\n");
  CHECK(line_of(Tensor<bool>({2}, {true, false})) == "[1 0]\n");
  CHECK(line_of(Tensor<std::int8_t>(std::int8_t{-1})) == "[-1]\n");
  CHECK(line_of(Tensor<std::uint64_t>(std::uint64_t{1} << 63)) == "[9223372036854775808]\n");
  CHECK(line_of(Tensor<std::string>({3}, {"a", "b c", "\x01\xff\"'\n\\"})) == "[a b c \\001\xff\\\"\\'\\n\\\\]\n");
  CHECK(line_of(Tensor<std::complex<float>>(std::complex<float>(1, -0.5f))) == "[(1,-0.5)]\n");
}

TEST_CASE("a line has a message and several tensors, and is written so many times", "[print]") {
  Graph graph;
  const auto x = placeholder<float>(graph, Shape{});
  const auto y = print(x, {x, x * 2.0f}, "x: ", {.first_n = 2});
  const auto nothing = print(y, {}, "nothing");
  const auto slope = gradients(reduce_sum(nothing * 3.0f), x);
  Session session(graph);
  CHECK(written_by([&] {
          for (int i = 0; i < 3; ++i) CHECK(session.run({{x, static_cast<float>(i)}}, y).scalar() == i);
        }) == "x: [0][0]\nx: [1][2]\n");
  CHECK(session.run({{x, 1.0f}}, slope).scalar() == 3.0f);
  CHECK(written_by([&] { session.run({{x, 1.0f}}, nothing); }) == "nothing\n");
}

// In as_graph_def() TensorFlow 2.21.0 gives the nodes "x", "Const" and "p" for tf.compat.v1.Print(x, [x,
// tf.constant([1, 2])], message="m: ", summarize=2), and the node "a" for tf.debugging.Assert.
TEST_CASE("a graph of TensorFlow's with Print and Assert lists the types of what they print", "[print]") {
  const auto def_with = [](const std::vector<DType>& printed, const std::vector<DType>& asserted) {
    GraphDef def;
    const auto add = [&](std::string name, std::string op, std::vector<std::string> inputs, std::string type,
                         DType dtype, std::vector<std::pair<std::string, AttrValue>> attrs) {
      NodeDef& node = def.nodes.emplace_back();
      node.name = std::move(name);
      node.op = std::move(op);
      node.inputs = std::move(inputs);
      if (!type.empty()) node.types = {{type, dtype}};
      node.attrs = std::move(attrs);
    };
    add("x", "Placeholder", {}, "dtype", DType::float32, {{"shape", PartialShape{2}}});
    add("Const", "Const", {}, "dtype", DType::int32, {{"value", AnyTensor(Tensor<std::int32_t>({2}, {1, 2}))}});
    add("p", "Print", {"x", "x", "Const"}, "T", DType::float32,
        {{"summarize", std::int64_t{2}},
         {"message", std::string("m: ")},
         {"first_n", std::int64_t{-1}},
         {"U", printed}});
    add("holds", "Const", {}, "dtype", DType::boolean, {{"value", AnyTensor(Tensor<bool>(true))}});
    add("a", "Assert", {"holds", "Const", "p"}, "", DType::invalid, {{"T", asserted}, {"summarize", std::int64_t{3}}});
    return def;
  };
  const std::vector<DType> printed{DType::float32, DType::int32}, asserted{DType::int32, DType::float32};
  const GraphDef def = def_with(printed, asserted);
  const Graph graph = import_graph(def, standard_op_table());
  const GraphDef again = to_graph_def(graph);
  static_cast<void>(import_graph(again, standard_op_table()));
  CHECK(again.nodes[2].attrs.back().first == "U");
  Session session(graph);
  const Output<float> x(AnyOutput(graph.store(), {graph.find("x").node_id(), 0}));
  CHECK(written_by([&] { session.run({{x, Tensor<float>({2}, {0.5f, 3})}}, graph.find("a")); }) == "m: [0.5 3][1 2]\n");

  const auto refused = [&](const std::vector<DType>& of_print, const std::vector<DType>& of_assert) {
    return error_of([&] { import_graph(def_with(of_print, of_assert), standard_op_table()); });
  };
  CHECK(
      contains(refused({DType::float32}, asserted), "1 element types of attribute 'U' are not those of the 2 inputs"));
  CHECK(contains(refused({DType::float32, DType::float32}, asserted), "attribute 'U'"));
  CHECK(contains(refused(printed, printed), "attribute 'T'"));
}
