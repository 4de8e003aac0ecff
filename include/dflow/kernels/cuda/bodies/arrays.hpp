#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/type_list.hpp>

#include <cstdint>

namespace dflow::cuda {

/// An element of `bytes` bytes, for any element type.
template <int bytes>
struct Bits {
  alignas(bytes) unsigned char of[bytes];
};

/// y[i] = *value, or `constant` if `value` is null.
struct FillArgs {
  std::int64_t n = 0;
  const void* value = nullptr;
  Bits<16> constant = {};
  void* y = nullptr;
};

template <int bytes>
struct FillBody {
  static constexpr const char* name = "fill";
  static constexpr bool has_barriers = false;
  using Args = FillArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    const Element value = *static_cast<const Element*>(args.value != nullptr ? args.value : &args.constant);
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) static_cast<Element*>(args.y)[i] = value;
  }
};

/// Copies the elements of a box from one place to another.
struct CopyArgs {
  static constexpr int max_rank = 8;

  std::int64_t n = 0;
  std::int32_t rank = 0;
  std::int64_t extents[max_rank] = {};
  std::int64_t from_strides[max_rank] = {}, to_strides[max_rank] = {};  ///< in elements
  const void* from = nullptr;
  void* to = nullptr;
};

template <int bytes>
struct CopyBody {
  static constexpr const char* name = "copy";
  static constexpr bool has_barriers = false;
  using Args = CopyArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      std::int64_t from = 0, to = 0, rest = i;
      for (int d = args.rank - 1; d >= 0; --d) {
        const std::int64_t index = d == 0 ? rest : rest % args.extents[d];
        rest /= args.extents[d];
        from += index * args.from_strides[d];
        to += index * args.to_strides[d];
      }
      static_cast<Element*>(args.to)[to] = static_cast<const Element*>(args.from)[from];
    }
  }
};

using ArrayBodies = TypeList<FillBody<1>, FillBody<2>, FillBody<4>, FillBody<8>, FillBody<16>, CopyBody<1>, CopyBody<2>,
                             CopyBody<4>, CopyBody<8>, CopyBody<16>>;

}  // namespace dflow::cuda
