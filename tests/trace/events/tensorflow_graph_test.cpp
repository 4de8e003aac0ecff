#include <dflow/trace/events/tensorflow_graph.hpp>

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/matmul.hpp>

#include "catch.hpp"

#include <dflow/io/proto/proto_reader.hpp>

#include <string>
#include <string_view>

using namespace dflow;

namespace {

std::string shown_shape(ProtoReader shape) {
  std::string text = "[";
  while (shape.next()) {
    if (shape.number() == 3) return "?";
    for (ProtoReader dim = shape.message(); dim.next();) text += str_cat(dim.int64(), ",");
  }
  return text + "]";
}

/// The parts of an AttrValue that the tests look at.
std::string shown_value(ProtoReader value) {
  std::string text;
  while (value.next()) {
    if (value.number() == 1) text += str_cat("{", shown_value(value.message()), "}");
    if (value.number() == 2) text += value.bytes();
    if (value.number() == 5) text += value.boolean() ? "true" : "false";
    if (value.number() == 6) text += str_cat("type ", value.uint64());
    if (value.number() == 7) text += shown_shape(value.message());
    if (value.number() == 8) text += str_cat("tensor of ", value.bytes().size(), " bytes");
  }
  return text;
}

/// One line a node.
std::string node_listing(std::string_view graph_def) {
  std::string lines;
  for (ProtoReader in(graph_def); in.next();) {
    if (in.number() != 1) continue;
    for (ProtoReader node = in.message(); node.next();) {
      if (node.number() == 1) lines += node.bytes();
      if (node.number() == 2) lines += str_cat(" = ", node.bytes());
      if (node.number() == 3) lines += str_cat(" <", node.bytes());
      if (node.number() == 4) lines += str_cat(" @", node.bytes());
      if (node.number() == 5) {
        ProtoReader entry = node.message();
        entry.next();
        lines += str_cat(" ", entry.bytes());
        entry.next();
        lines += str_cat(":", shown_value(entry.message()));
      }
    }
    lines += "\n";
  }
  return lines;
}

}  // namespace

TEST_CASE("a graph is written with its scopes, devices, types, attributes and shapes", "[tensorflow_graph]") {
  Graph graph;
  const auto x = constant(graph, Tensor<float>({1, 2}, {1, 2}), {.name = "x"});
  {
    const auto device = graph.device("/job:ps/task:0/cpu:0");
    const auto scope = graph.name_scope("layer");
    const auto w = constant(graph, Tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6}), {.name = "w"});
    const auto control = graph.control_dependencies({x.operation()});
    matmul(x, w, {.transpose_b = true}, {.name = "y"});
  }
  const auto colocated = graph.colocate_with(x);
  no_op(graph, {.name = "done"});
  CHECK(node_listing(tensorflow_graph_def(graph)) ==
        "x = Const dtype:type 1 value:tensor of 22 bytes _output_shapes:{[1,2,]}\n"
        "layer/w = Const @/job:ps/task:0/device:CPU:0 dtype:type 1 value:tensor of 38 bytes _output_shapes:{[3,2,]}\n"
        "layer/y = MatMul <x <layer/w <^x @/job:ps/task:0/device:CPU:0 T:type 1 transpose_b:true "
        "_output_shapes:{[1,3,]}\n"
        "done = NoOp _class:{loc:@x}\n");
}

TEST_CASE("a large constant is written without its elements", "[tensorflow_graph]") {
  Graph graph;
  constant(graph, Tensor<float>::zeros({1000, 1000}), {.name = "large"});
  constant(graph, Tensor<std::string>(std::string(2000, 'x')), {.name = "long"});
  CHECK(tensorflow_graph_def(graph).size() < 500);
}

TEST_CASE("an empty graph has a version alone", "[tensorflow_graph]") {
  CHECK(tensorflow_graph_def(Graph()) == std::string("\x22\x02\x08\x15", 4));
}
