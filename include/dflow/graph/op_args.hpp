#pragma once

#include <dflow/graph/node.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dflow {

/// The inputs or outputs of a node that an argument of its op's signature stands for.
struct ArgRange {
  std::size_t first = 0;
  std::size_t size = 0;

  friend bool operator==(const ArgRange&, const ArgRange&) = default;
};

/// The inputs of `node` that argument `arg` of its op stands for: one, or as many as the list has.
ArgRange input_range(const Node& node, std::size_t arg);
/// The same for outputs.
ArgRange output_range(const Node& node, std::size_t arg);

/// The lists in an op's signature, as a node's attributes describe them; null attributes are the op's defaults.
///
/// Thread safety: const after construction.
class ListAttrs {
 public:
  ListAttrs(const OpDef& op, const void* attrs) : op_(op), attrs_(attrs) {}

  /// How many edges an argument stands for; -1 for an open list.
  /// Errors: InvalidArgument if an attribute gives a list a length that is negative, or an element type that is none.
  std::int64_t length(const ArgDef& arg) const;
  /// The same of an output, where an open list has a length as well.
  std::int64_t output_length(const ArgDef& arg) const;
  /// The element types of a `typed_list`, in order.
  std::vector<DType> dtypes(const ArgDef& arg) const;

 private:
  AttrValue value(const ArgDef& arg) const;
  const void* attrs() const;

  const OpDef& op_;
  const void* attrs_;
  mutable std::shared_ptr<void> defaults_;
};

}  // namespace dflow
