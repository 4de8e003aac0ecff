#pragma once

#include <dflow/kernels/cuda/bodies/arrays.hpp>

#include <cstdint>

namespace dflow::cuda {

/// Parts of y, one behind the other: each has the elements of a block, or zeros.
struct PartsArgs {
  static constexpr int max_parts = 64;

  std::int32_t num_parts = 0;
  const void* from[max_parts] = {};         ///< null: zeros
  std::int64_t begins[max_parts + 1] = {};  ///< in y; the last is where the last part ends
  void* y = nullptr;
};

template <int bytes>
struct PartsBody {
  static constexpr const char* name = "parts";
  static constexpr bool has_barriers = false;
  using Args = PartsArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    const std::int64_t end = args.begins[args.num_parts];
    for (std::int64_t i = args.begins[0] + thread.index(); i < end; i += thread.count()) {
      // The last part that does not begin behind i.
      int first = 0, count = args.num_parts;
      while (count > 1) {
        const int half = count / 2;
        if (args.begins[first + half] <= i) first += half;
        count -= half;
      }
      const auto* const from = static_cast<const Element*>(args.from[first]);
      static_cast<Element*>(args.y)[i] = from == nullptr ? Element{} : from[i - args.begins[first]];
    }
  }
};

using ListBodies = TypeList<PartsBody<1>, PartsBody<2>, PartsBody<4>, PartsBody<8>, PartsBody<16>>;

}  // namespace dflow::cuda
