#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/graph/attr_value.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

/// One node as it stands in a file or goes to a peer: everything by name, nothing checked.
struct NodeDef {
  std::string name;
  std::string op;
  std::string device;  ///< a full or partial device name, empty for no constraint
  /// Element types by the names of the op's type parameters ("T"). Types that the inputs decide may be left out.
  std::vector<std::pair<std::string, DType>> types;
  /// "node" or "node:1" for data, "^node" for control, in any order.
  std::vector<std::string> inputs;
  /// Attributes that are not here have the op's defaults.
  std::vector<std::pair<std::string, AttrValue>> attrs;
  std::string colocated_with;  ///< a node's name, or empty
  std::string function;        ///< the node that begins the function with this node in its body, or empty
  /// Where in a program the node was built; an import mentions it in errors. `to_graph_def` leaves the directories of
  /// the machine that compiled the program out.
  std::string file;
  std::uint32_t line = 0;

  /// By value; tensors and reals bit by bit.
  friend bool operator==(const NodeDef& a, const NodeDef& b);
};

}  // namespace dflow
