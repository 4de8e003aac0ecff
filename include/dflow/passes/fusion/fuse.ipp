#pragma once

#include <dflow/passes/fusion/fuse.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dflow {

namespace detail {

/// When an op's kernel is asked for: the position of its table, past the end where there is none, and of its rows
/// there.
using AskedAt = std::pair<std::size_t, std::size_t>;
AskedAt asked_at(std::span<const KernelTable> tables, const OpDef& op) {
  const auto has_op = [&](const KernelTable& table) { return table.find(op.name) != nullptr; };
  const auto found = std::find_if(tables.begin(), tables.end(), has_op);
  return {static_cast<std::size_t>(found - tables.begin()),
          found == tables.end() ? 0 : found->rows().depth_of(op.name)};
}

std::vector<Fusions::Entry> fusions_of(std::span<const KernelTable> tables) {
  std::vector<Fusions::Entry> entries;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    tables[t].for_each([&](const KernelEntry& kernel) {
      if (kernel.op->fuses.empty() || tables[t].find(kernel.op->name) != &kernel) return;
      const AskedAt at = asked_at(tables, *kernel.op);
      if (at.first != t) return;
      for (const FusedPair& pair : kernel.op->fuses) {
        const OpDef& first = pair.first();
        const OpDef& reader = pair.reader();
        if (asked_at(tables, first) < at || asked_at(tables, reader) < at) continue;
        entries.push_back({&first, &reader, pair.attrs, &kernel});
      }
    });
  }
  return entries;
}

}  // namespace detail

Fusions::Fusions(std::span<const KernelTables> kernels) {
  by_device_.reserve(kernels.size());
  for (const KernelTables& tables : kernels) by_device_.push_back(detail::fusions_of(tables.tables()));
}

bool Fusions::empty() const noexcept {
  return std::all_of(by_device_.begin(), by_device_.end(), [](const auto& entries) { return entries.empty(); });
}

}  // namespace dflow
