#pragma once

#include <dflow/base/strong_index.hpp>
#include <dflow/core/dtype.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/graph/op_def.hpp>

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

namespace dflow {

/// The number of a node in its graph; inputs always have smaller ids, so ids are a topological order, except for the
/// back edges of loops.
using NodeId = StrongIndex<struct NodeTag>;

/// Output `index` of node `node`, which is numbered by `Index`.
template <class Index>
struct BasicEndpoint {
  Index node;
  std::int32_t index = 0;

  friend constexpr bool operator==(const BasicEndpoint&, const BasicEndpoint&) = default;
};
using Endpoint = BasicEndpoint<NodeId>;

/// Element type and inferred shape of one output.
struct OutputInfo {
  DType dtype = DType::invalid;
  PartialShape shape;
};

/// The element types of a node's type parameters, in the order of `OpDef::type_params`.
struct TypeArgs {
  static constexpr std::size_t max_size = 4;
  DType values[max_size] = {};
  std::uint8_t size = 0;

  DType operator[](std::size_t i) const noexcept { return values[i]; }
  void push_back(DType dtype) noexcept { values[size++] = dtype; }
  friend bool operator==(const TypeArgs&, const TypeArgs&) = default;
};

/// One operation of a graph. A plain value: passes copy, edit and drop nodes; user code reads them through `Graph`.
struct Node {
  const OpDef* op = nullptr;
  std::string name;
  TypeArgs types;
  std::vector<Endpoint> inputs;
  std::vector<NodeId> control_inputs;
  std::vector<OutputInfo> outputs;
  /// The op's `Attrs` struct; null means all defaults. Shared between copies and never written.
  std::shared_ptr<const void> attrs;
  std::string device;          ///< a full or partial device name, empty for no constraint
  NodeId colocated_with;       ///< valid: must be placed where that node is
  NodeId function;             ///< valid: part of the body of the function that begins with that node
  std::source_location where;  ///< where in the user's program it was built

  template <class Op>
  const typename Op::Attrs& attrs_as() const;
};

/// The attribute values of a node, read from its struct (or the defaults).
AttrValue attr_of(const Node& node, const AttrField& field);
/// Two nodes of one op.
bool same_attrs(const Node& a, const Node& b);

/// The names of the functions that a node calls, in the order of its attributes.
std::vector<std::string> called_functions(const Node& node);

/// Precondition: the node has role `argument`, and its number is not negative.
std::size_t argument_number(const Node& node);

}  // namespace dflow
