#pragma once

// The body of a kernel for GPUs: nvcc compiles it, and a host compiler too.

#include <dflow/op/elementwise_math.hpp>

#include <cstdint>

// [body]
struct WeightedRowsArgs {  // copied to the GPU: numbers and pointers
  std::int64_t count = 0, columns = 1;
  const void *x = nullptr, *weights = nullptr;
  void* y = nullptr;
  float scale = 1;
};

template <class T>
struct WeightedRowsBody {
  static constexpr const char* name = "weighted_rows";
  static constexpr bool has_barriers = false;
  using Args = WeightedRowsArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.count; i += thread.count()) {
      const T factor = static_cast<const T*>(args.weights)[i / args.columns] * static_cast<T>(args.scale);
      static_cast<T*>(args.y)[i] = static_cast<const T*>(args.x)[i] * factor;
    }
  }
};
// [body]
