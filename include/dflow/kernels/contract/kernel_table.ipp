#pragma once

#include <dflow/kernels/contract/kernel_table.hpp>

#include <algorithm>

namespace dflow {

struct KernelTable::Owned {
  std::string device_type;
  std::vector<KernelEntry> entries;
};

KernelTable::KernelTable(std::string device_type, std::vector<KernelEntry> entries, DeviceCheck device_check)
    : check_(device_check) {
  for (const KernelEntry& entry : entries) {
    if (entry.op != nullptr && entry.make != nullptr) continue;
    throw_error(Status::invalid_argument(
        str_cat("a row of a table of ", device_type, " kernels has no ",
                entry.op == nullptr ? "op" : str_cat("function that makes its kernel: ", entry.op->name))));
  }
  std::sort(entries.begin(), entries.end(),
            [](const KernelEntry& a, const KernelEntry& b) { return a.op->name < b.op->name; });
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (entries[i - 1].op->name != entries[i].op->name) continue;
    throw_error(Status::invalid_argument(
        str_cat("op ", entries[i].op->name, " is twice in a table of ", device_type, " kernels")));
  }
  auto owned = std::make_shared<Owned>(Owned{std::move(device_type), std::move(entries)});
  device_type_ = owned->device_type;
  rows_ = {owned->entries, nullptr};
  owner_ = std::move(owned);
}

const KernelEntry* KernelRows::find(std::string_view op) const noexcept {
  const auto found =
      std::lower_bound(entries.begin(), entries.end(), op,
                       [](const KernelEntry& entry, std::string_view wanted) { return entry.op->name < wanted; });
  if (found != entries.end() && found->op->name == op) return &*found;
  return parent == nullptr ? nullptr : parent->find(op);
}

std::size_t KernelRows::depth_of(std::string_view op) const noexcept {
  if (parent == nullptr) return find(op) == nullptr ? 1 : 0;
  return KernelRows{entries}.find(op) != nullptr ? 0 : 1 + parent->depth_of(op);
}

void KernelTable::for_each(FunctionRef<void(const KernelEntry&)> visit) const {
  const auto visit_rows = [&](const auto& self, const KernelRows& rows) -> void {
    if (rows.parent != nullptr) self(self, *rows.parent);
    for (const KernelEntry& entry : rows.entries) visit(entry);
  };
  visit_rows(visit_rows, rows_);
}

Status KernelTable::check(const DeviceContext& device) const { return check_ == nullptr ? Status() : check_(device); }

KernelTables KernelTables::for_type(std::string_view device_type) const {
  KernelTables found;
  for (const KernelTable& table : tables_) {
    if (table.device_type() == device_type) found.add(table);
  }
  return found;
}

KernelTables KernelTables::for_device(const DeviceContext& device, const KernelTable* own) const {
  KernelTables found = for_type(device.type);
  if (own != nullptr) {
    if (own->device_type() != device.type) {
      throw_error(Status::invalid_argument(str_cat("device '", device.name, "' of type ", device.type,
                                                   " brings a table of ", own->device_type(), " kernels")));
    }
    found.add(*own);
  }
  for (const KernelTable& table : found.tables_) throw_if_error(table.check(device));
  return found;
}

const KernelEntry* KernelTables::find(std::string_view device_type, std::string_view op) const noexcept {
  for (const KernelTable& table : tables_) {
    if (table.device_type() != device_type) continue;
    if (const KernelEntry* found = table.find(op)) return found;
  }
  return nullptr;
}

KernelCost default_cost(const KernelInit& init) {
  KernelCost cost;
  const auto elements = [](const OutputInfo& edge) {
    if (!edge.shape.has_rank()) return 1000.0;
    double count = 1;
    for (const std::int64_t dim : edge.shape.dims()) count *= dim == dynamic ? 32.0 : static_cast<double>(dim);
    return count;
  };
  const auto bytes_of = [](const OutputInfo& edge) {
    return is_element(edge.dtype) ? static_cast<double>(size_of(edge.dtype)) : 0.0;
  };
  for (const OutputInfo& input : init.inputs) cost.bytes += elements(input) * bytes_of(input);
  for (const OutputInfo& output : init.node.outputs) {
    cost.bytes += elements(output) * bytes_of(output);
    cost.flops += elements(output);
  }
  return cost;
}

double estimated_ns(const AnyKernel& kernel, const KernelEntry& entry, const KernelInit& init) {
  if (init.device.is_asynchronous) return KernelRates::unknown_ns;
  if (const double said = kernel.cost_ns(); said > 0) return said;
  if (entry.cost == nullptr && entry.is_trusted) return KernelRates::unknown_ns;
  const KernelCost cost = cost_of(entry, init);
  return KernelRates::call_ns +
         std::max(cost.flops / KernelRates::flops_per_ns, cost.bytes / KernelRates::bytes_per_ns);
}

void KernelTables::add(KernelTable table) { tables_.push_back(std::move(table)); }

void KernelTables::insert(std::size_t position, KernelTable table) {
  tables_.insert(tables_.begin() + static_cast<std::ptrdiff_t>(position), std::move(table));
}

std::span<const KernelTable> KernelTables::tables() const noexcept { return tables_; }

}  // namespace dflow
