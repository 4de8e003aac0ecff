#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/graph/graph_def.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/io/proto/proto_writer.hpp>
#include <dflow/io/summary/tensor_proto.hpp>
#include <dflow/trace/events/tensorflow_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace dflow {

namespace detail {

void write_shown_tensor(ProtoWriter& out, const AnyTensor& tensor) {
  std::size_t bytes = tensor.bytes();
  if (tensor.dtype() == DType::string) {
    for (const std::string& text : Tensor<std::string>::of(tensor)) bytes += text.size();
  }
  if (is_element(tensor.dtype()) && bytes <= max_shown_tensor_bytes) return write_tensor_proto(out, tensor);
  out.uint64(1, static_cast<std::uint64_t>(tensor.dtype()));
  out.message(2, [&](ProtoWriter& shape) { write_shape_proto(shape, tensor.shape()); });
}

/// The items of AttrValue.ListValue: one field for each type.
void write_list_item(ProtoWriter& out, bool value) { out.boolean(5, value); }
void write_list_item(ProtoWriter& out, std::int64_t value) { out.int64(3, value); }
void write_list_item(ProtoWriter& out, double value) { out.float32(4, static_cast<float>(value)); }
void write_list_item(ProtoWriter& out, const std::string& value) { out.bytes(2, value); }
void write_list_item(ProtoWriter& out, DType value) { out.uint64(6, static_cast<std::uint64_t>(value)); }
void write_list_item(ProtoWriter& out, const PartialShape& value) {
  out.message(7, [&](ProtoWriter& shape) { write_shape_proto(shape, value); });
}

/// The fields of an AttrValue. Its single values have the same numbers as the items of a list.
struct AttrValueWriter {
  ProtoWriter& out;

  void operator()(std::monostate) const {}
  void operator()(bool value) const { write_list_item(out, value); }
  void operator()(std::int64_t value) const { write_list_item(out, value); }
  void operator()(double value) const { write_list_item(out, value); }
  void operator()(const std::string& value) const { write_list_item(out, value); }
  void operator()(DType value) const { write_list_item(out, value); }
  void operator()(const PartialShape& value) const { write_list_item(out, value); }
  void operator()(const AnyTensor& value) const {
    out.message(8, [&](ProtoWriter& tensor) { write_shown_tensor(tensor, value); });
  }
  void operator()(const FunctionName& value) const {
    out.message(10, [&](ProtoWriter& function) { function.bytes(1, value.name); });
  }
  template <class T>
  void operator()(const std::vector<T>& values) const {
    out.message(1, [&](ProtoWriter& list) {
      for (const T& value : values) write_list_item(list, value);
    });
  }
};

void write_attr(ProtoWriter& out, std::string_view name, const AttrValue& value) {
  out.message(5, [&](ProtoWriter& entry) {
    entry.bytes(1, name);
    entry.message(2, [&](ProtoWriter& fields) { std::visit(AttrValueWriter{fields}, value); });
  });
}

void write_node_def(ProtoWriter& out, const NodeDef& def, const Node& node) {
  out.bytes(1, def.name);
  out.bytes(2, def.op);
  for (const std::string& input : def.inputs) out.bytes(3, input);
  if (!def.device.empty()) out.bytes(4, def.device);
  for (std::size_t i = 0; i < node.types.size; ++i) write_attr(out, node.op->type_params[i].name, node.types[i]);
  for (const auto& [name, value] : def.attrs) write_attr(out, name, value);
  if (!def.colocated_with.empty()) {
    write_attr(out, "_class", std::vector<std::string>{str_cat("loc:@", def.colocated_with)});
  }
  if (!def.function.empty()) write_attr(out, "_function", def.function);
  std::vector<PartialShape> shapes;
  shapes.reserve(node.outputs.size());
  for (const OutputInfo& output : node.outputs) shapes.push_back(output.shape);
  if (!shapes.empty()) write_attr(out, "_output_shapes", shapes);
}

}  // namespace detail

std::string tensorflow_graph_def(const GraphStore& graph) {
  constexpr std::int64_t producer = 21;  // the first version of GraphDef with all fields that are written here
  const GraphDef def = to_graph_def(graph, 0);
  std::string bytes;
  ProtoWriter out(bytes);
  for (std::size_t i = 0; i < def.nodes.size(); ++i) {
    out.message(1, [&](ProtoWriter& node) { detail::write_node_def(node, def.nodes[i], graph.node(NodeId(i))); });
  }
  out.message(4, [&](ProtoWriter& versions) { versions.int64(1, producer); });
  return bytes;
}

}  // namespace dflow
