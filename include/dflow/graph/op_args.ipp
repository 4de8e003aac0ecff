#pragma once

#include <dflow/base/status.hpp>
#include <dflow/graph/op_args.hpp>

#include <span>
#include <variant>

namespace dflow {

// ---- ListAttrs ----

const void* ListAttrs::attrs() const {
  if (attrs_ != nullptr) return attrs_;
  if (defaults_ == nullptr) defaults_ = op_.make_attrs();
  return defaults_.get();
}

AttrValue ListAttrs::value(const ArgDef& arg) const {
  return op_.attr_fields[static_cast<std::size_t>(arg.attr)].get(attrs());
}

std::int64_t ListAttrs::length(const ArgDef& arg) const {
  if (!arg.is_list()) return 1;
  if (arg.is_open_list()) return -1;
  if (arg.kind == ArgDef::Kind::typed_list) return static_cast<std::int64_t>(dtypes(arg).size());
  const std::int64_t length = std::get<std::int64_t>(value(arg));
  if (length >= 0) return length;
  throw_error(Status::invalid_argument(str_cat(op_.name, ": attribute '",
                                               op_.attr_fields[static_cast<std::size_t>(arg.attr)].name, "' is ",
                                               length, ", which is no length of a list")));
}

std::int64_t ListAttrs::output_length(const ArgDef& arg) const {
  const std::int64_t length = arg.is_open_list() ? op_.output_list_size(attrs()) : this->length(arg);
  if (length >= 0) return length;
  throw_error(Status::invalid_argument(str_cat(op_.name, ": cannot have ", length, " outputs")));
}

std::vector<DType> ListAttrs::dtypes(const ArgDef& arg) const {
  std::vector<DType> dtypes = std::get<std::vector<DType>>(value(arg));
  for (const DType dtype : dtypes) {
    if (dtype != DType::invalid) continue;
    throw_error(Status::invalid_argument(str_cat(op_.name, ": attribute '",
                                                 op_.attr_fields[static_cast<std::size_t>(arg.attr)].name,
                                                 "' lists what is no element type")));
  }
  return dtypes;
}

// ---- ranges ----

namespace detail {

ArgRange range_of(const Node& node, std::span<const ArgDef> args, std::size_t arg, std::size_t total) {
  const ListAttrs lists(*node.op, node.attrs.get());
  const auto length_of = [&lists](const ArgDef& def) { return static_cast<std::size_t>(lists.length(def)); };
  std::size_t open = total;  // what is left for the open list
  for (const ArgDef& def : args) open -= def.is_open_list() ? 0 : length_of(def);
  ArgRange range;
  for (std::size_t i = 0; i < arg; ++i) range.first += args[i].is_open_list() ? open : length_of(args[i]);
  range.size = args[arg].is_open_list() ? open : length_of(args[arg]);
  return range;
}

}  // namespace detail

ArgRange input_range(const Node& node, std::size_t arg) {
  return detail::range_of(node, node.op->inputs, arg, node.inputs.size());
}

ArgRange output_range(const Node& node, std::size_t arg) {
  return detail::range_of(node, node.op->outputs, arg, node.outputs.size());
}

}  // namespace dflow
