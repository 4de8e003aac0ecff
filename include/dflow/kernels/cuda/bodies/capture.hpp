#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/kernels/cuda/grid/error_slot.hpp>

#include <cstdint>

namespace dflow::cuda {

struct TakeErrorArgs {
  const ErrorSlot* from = nullptr;
  ErrorSlot* to = nullptr;
  std::uint32_t first_kernel = 0;  ///< how many kernels may note errors in `to` before those of `from`
};

/// Copies the error noted in one slot to another, unless the other has one already.
struct TakeErrorBody {
  static constexpr const char* name = "take an error";
  static constexpr bool has_barriers = false;
  using Args = TakeErrorArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    if (thread.index() != 0 || args.from->kernel == 0) return;
    note_error(thread, args.to, args.from->kernel + args.first_kernel, [&](ErrorSlot& slot) {
      slot.detail = args.from->detail;
      slot.position = args.from->position;
      for (int v = 0; v < ErrorSlot::max_values; ++v) {
        for (int b = 0; b < ErrorSlot::value_bytes; ++b) slot.values[v][b] = args.from->values[v][b];
      }
    });
  }
};

using CaptureBodies = TypeList<TakeErrorBody>;

}  // namespace dflow::cuda
