#pragma once

#include <dflow/op/op_table.hpp>

#include <algorithm>

namespace dflow {

OpTable::OpTable(std::span<const OpDef* const> ops, const OpTable* parent) : ops_(ops), parent_(parent) {
  if (parent == nullptr) return;
  for (const OpDef* op : ops) {
    if (parent->find(op->name) == nullptr) continue;
    throw_error(Status::invalid_argument(
        str_cat("there is an op named ", op->name, " already; give the new one another name")));
  }
}

const OpDef* OpTable::find(std::string_view name) const noexcept {
  const auto found = std::lower_bound(ops_.begin(), ops_.end(), name,
                                      [](const OpDef* op, std::string_view wanted) { return op->name < wanted; });
  if (found != ops_.end() && (*found)->name == name) return *found;
  return parent_ == nullptr ? nullptr : parent_->find(name);
}

void OpTable::for_each(FunctionRef<void(const OpDef&)> visit) const {
  if (parent_ != nullptr) parent_->for_each(visit);
  for (const OpDef* op : ops_) visit(*op);
}

std::size_t OpTable::size() const noexcept { return ops_.size() + (parent_ == nullptr ? 0 : parent_->size()); }

std::uint64_t OpTable::fingerprint() const noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const auto mix = [&hash](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash = (hash ^ 0xffu) * 0x100000001b3u;
  };
  const auto mix_number = [&hash](std::uint64_t number) { hash = (hash ^ number) * 0x100000001b3u; };
  for_each([&](const OpDef& op) {
    mix(op.name);
    for (const TypeParamDef& param : op.type_params) {
      mix(param.name);
      mix_number(param.allowed);
    }
    for (const std::span<const ArgDef> args : {op.inputs, op.outputs}) {
      mix_number(args.size());
      for (const ArgDef& arg : args) {
        mix_number(static_cast<std::uint64_t>(arg.attr + 1) << 24 | static_cast<std::uint64_t>(arg.kind) << 16 |
                   static_cast<std::uint64_t>(arg.dtype) << 8 | arg.param);
      }
    }
    for (const AttrField& field : op.attr_fields) {
      mix(field.name);
      mix_number(static_cast<std::uint64_t>(field.kind));
    }
  });
  return hash;
}

}  // namespace dflow
