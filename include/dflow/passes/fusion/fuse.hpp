#pragma once

#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

#include <memory>
#include <span>
#include <vector>

namespace dflow {

/// By device, the kernels that do the work of two ops (`Op::Fuses`). A kernel of the device's tables is left out if a
/// kernel of one of the two ops is in a table that is asked before.
///
/// Thread safety: immutable.
class Fusions {
 public:
  struct Entry {
    const OpDef* first = nullptr;
    const OpDef* reader = nullptr;
    std::shared_ptr<const void> (*attrs)(const Node& first, const Node& reader) = nullptr;
    const KernelEntry* kernel = nullptr;
  };

  Fusions() = default;
  /// `kernels` by device, which must outlive it.
  explicit Fusions(std::span<const KernelTables> kernels);

  std::span<const Entry> on(std::size_t device) const noexcept { return by_device_[device]; }
  bool empty() const noexcept;

 private:
  std::vector<std::vector<Entry>> by_device_;
};

}  // namespace dflow
