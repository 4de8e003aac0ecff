#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/node.hpp>
#include <dflow/graph/node_def.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow::detail {

/// Writes a node without its surroundings; keeps the default attributes of each op that it has met.
class NodeDefWriter {
 public:
  NodeDef write(const Node& node) {
    NodeDef def;
    def.name = node.name;
    def.op = node.op->name;
    for (std::size_t i = 0; i < node.op->type_params.size(); ++i) {
      def.types.emplace_back(node.op->type_params[i].name, node.types[i]);
    }
    if (node.attrs != nullptr) add_attrs(node, def);
    if (node.where.line() != 0) {
      const std::string_view file = node.where.file_name();
      def.file = file.substr(file.find_last_of("/\\") + 1);
      def.line = node.where.line();
    }
    return def;
  }

  static std::string edge_name(const std::string& source, std::int32_t index) {
    return index == 0 ? source : str_cat(source, ":", index);
  }

 private:
  void add_attrs(const Node& node, NodeDef& def) {
    const std::vector<AttrValue>& defaults = defaults_of(*node.op);
    for (std::size_t i = 0; i < defaults.size(); ++i) {
      const AttrField& field = node.op->attr_fields[i];
      AttrValue value = field.get(node.attrs.get());
      if (!attr_equal(value, defaults[i])) def.attrs.emplace_back(field.name, std::move(value));
    }
  }

  const std::vector<AttrValue>& defaults_of(const OpDef& op) {
    const auto [found, is_new] = defaults_.try_emplace(&op);
    if (is_new && !op.attr_fields.empty()) {
      const std::shared_ptr<void> attrs = op.make_attrs();
      for (const AttrField& field : op.attr_fields) found->second.push_back(field.get(attrs.get()));
    }
    return found->second;
  }

  std::unordered_map<const OpDef*, std::vector<AttrValue>> defaults_;
};

}  // namespace dflow::detail
