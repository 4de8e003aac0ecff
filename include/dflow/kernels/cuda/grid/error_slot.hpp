#pragma once

#include <dflow/base/config.hpp>

#include <cstdint>

namespace dflow::cuda {

/// The kernels of one step note here the first error that they find. The slot is in the device's memory, and the host
/// reads it when the step ends. All zero at first.
struct ErrorSlot {
  static constexpr int max_values = 4;
  static constexpr int value_bytes = 16;

  /// 0, or which of the step's kernels has found it, counted from 1.
  std::uint32_t kernel = 0;
  std::uint32_t detail = 0;   ///< a number that the kernel gives
  std::int64_t position = 0;  ///< of the element
  unsigned char values[max_values][value_bytes] = {};
};

/// Notes an error, if it is the first one of the step. `fill` writes the details.
template <class Thread, class Fill>
DFLOW_FN void note_error(const Thread& thread, ErrorSlot* slot, std::uint32_t kernel, const Fill& fill) {
  if (thread.compare_and_swap(&slot->kernel, 0u, kernel) == 0u) fill(*slot);
}

}  // namespace dflow::cuda
