#pragma once

#include <dflow/passes/fuse.hpp>

#include <algorithm>
#include <cstddef>

namespace dflow {

namespace detail {

/// Position of the table that an op's kernel comes from; past the end where there is none.
DFLOW_INLINE std::size_t table_of(std::span<const KernelTable> tables, const OpDef& op) {
  const auto has_op = [&](const KernelTable& table) { return table.find(op.name) != nullptr; };
  return static_cast<std::size_t>(std::find_if(tables.begin(), tables.end(), has_op) - tables.begin());
}

DFLOW_INLINE std::vector<Fusions::Entry> fusions_of(std::span<const KernelTable> tables) {
  std::vector<Fusions::Entry> entries;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    tables[t].for_each([&](const KernelEntry& kernel) {
      for (const FusedPair& pair : kernel.op->fuses) {
        const OpDef& first = pair.first();
        const OpDef& reader = pair.reader();
        if (table_of(tables, *kernel.op) < t || table_of(tables, first) < t || table_of(tables, reader) < t) continue;
        entries.push_back({&first, &reader, pair.attrs, &kernel});
      }
    });
  }
  return entries;
}

}  // namespace detail

DFLOW_INLINE Fusions::Fusions(std::span<const KernelTables> kernels) {
  by_device_.reserve(kernels.size());
  for (const KernelTables& tables : kernels) by_device_.push_back(detail::fusions_of(tables.tables()));
}

DFLOW_INLINE bool Fusions::empty() const noexcept {
  return std::all_of(by_device_.begin(), by_device_.end(), [](const auto& entries) { return entries.empty(); });
}

}  // namespace dflow
