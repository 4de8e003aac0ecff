#pragma once

#include <dflow/graph/graph_def.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace dflow::fuzz {

/// Changes the content of a graph instead of its bytes: other edges, functions, attributes, ops, more nodes and fewer.
/// Most results are graphs that are wrong in one place.
class GraphDefMutator {
 public:
  GraphDefMutator(GraphDef& def, unsigned seed) : def_(def), rng_(seed) {}

  void mutate() {
    for (std::size_t times = 1 + below(4); times > 0 && !def_.nodes.empty(); --times) {
      switch (below(10)) {
        case 0:
          set_input(any());
          break;
        case 1:
          any().inputs.push_back(edge());
          break;
        case 2:
          drop_one(any().inputs);
          break;
        case 3:
          any().function = below(4) == 0 ? std::string() : any().function;
          break;
        case 4:
          set_attr(any());
          break;
        case 5:
          any().op = any().op;
          break;
        case 8:
          def_.seed = below(4);
          break;
        case 6:
          copy_node();
          break;
        case 7:
          drop_one(def_.nodes);
          break;
        default:
          set_place(any());
      }
    }
  }

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(rng_); }
  NodeDef& any() { return def_.nodes[below(def_.nodes.size())]; }

  std::string edge() {
    const std::string& name = any().name;
    const std::size_t kind = below(8);
    return kind == 0 ? "^" + name : kind == 1 ? name + ":1" : name;
  }
  void set_input(NodeDef& node) {
    if (!node.inputs.empty()) node.inputs[below(node.inputs.size())] = edge();
  }
  template <class T>
  void drop_one(std::vector<T>& items) {
    if (!items.empty()) items.erase(items.begin() + static_cast<std::ptrdiff_t>(below(items.size())));
  }

  /// Sets an attribute to another name, number or list of types, or to an attribute of another node.
  void set_attr(NodeDef& node) {
    if (node.attrs.empty()) return;
    AttrValue& value = node.attrs[below(node.attrs.size())].second;
    if (auto* function = std::get_if<FunctionName>(&value)) {
      function->name = any().function;
    } else if (auto* number = std::get_if<std::int64_t>(&value)) {
      *number = static_cast<std::int64_t>(below(5)) - 1;
    } else if (auto* types = std::get_if<std::vector<DType>>(&value); types != nullptr && below(2) == 0) {
      below(2) == 0 ? types->push_back(DType::float32) : drop_one(*types);
    } else if (const NodeDef& other = any(); !other.attrs.empty()) {
      value = AttrValue(other.attrs[below(other.attrs.size())].second);
    }
  }

  void copy_node() {
    NodeDef copy = any();
    copy.name += "x";
    const std::string now = copy.name;
    def_.nodes.insert(def_.nodes.begin() + static_cast<std::ptrdiff_t>(below(def_.nodes.size() + 1)), std::move(copy));
    for (std::size_t readers = below(3); readers > 0; --readers) {
      if (NodeDef& node = any(); !node.inputs.empty()) node.inputs[below(node.inputs.size())] = now;
    }
  }

  void set_place(NodeDef& node) {
    if (below(2) == 0) {
      node.device = below(2) == 0 ? "/device:CPU:1" : "";
    } else {
      node.colocated_with = below(2) == 0 ? any().name : "";
    }
  }

  GraphDef& def_;
  std::mt19937 rng_;
};

}  // namespace dflow::fuzz
