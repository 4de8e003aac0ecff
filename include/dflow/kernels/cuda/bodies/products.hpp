#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/type_list.hpp>

#include <cstdint>
#include <type_traits>

namespace dflow::cuda {

/// y [batch, m, n] = a [batch, m, k] b [batch, k, n]; a and b may each be transposed.
struct ProductArgs {
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  std::int64_t batch = 0, m = 0, n = 0, k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
};

/// The product of integers, which wraps. Each block computes tiles of y from tiles of a and b in its own memory.
template <class T>
struct ProductBody {
  static constexpr const char* name = "product";
  static constexpr bool has_barriers = true;
  static constexpr int tile = 16;
  using Args = ProductArgs;
  using Unsigned = std::make_unsigned_t<T>;

  struct Shared {
    T a[tile][tile + 1];
    T b[tile][tile + 1];
  };

  /// Threads of a block: tile x tile.
  static constexpr std::uint32_t threads = tile * tile;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    Shared& shared = thread.template shared<Shared>();
    const int row = static_cast<int>(thread.index_in_block()) / tile;
    const int column = static_cast<int>(thread.index_in_block()) % tile;
    const std::int64_t rows = (args.m + tile - 1) / tile, columns = (args.n + tile - 1) / tile;
    for (std::int64_t t = thread.block(); t < args.batch * rows * columns; t += thread.blocks()) {
      const std::int64_t item = t / (rows * columns);
      const std::int64_t i = t / columns % rows * tile + row, j = t % columns * tile + column;
      const T* const a = static_cast<const T*>(args.a) + item * args.m * args.k;
      const T* const b = static_cast<const T*>(args.b) + item * args.k * args.n;
      Unsigned sum = 0;
      for (std::int64_t l = 0; l < args.k; l += tile) {
        const std::int64_t of_a = l + column, of_b = l + row;
        shared.a[row][column] =
            i < args.m && of_a < args.k ? a[args.transpose_a ? of_a * args.m + i : i * args.k + of_a] : T(0);
        shared.b[row][column] =
            j < args.n && of_b < args.k ? b[args.transpose_b ? j * args.k + of_b : of_b * args.n + j] : T(0);
        thread.barrier();
        for (int x = 0; x < tile; ++x) {
          sum =
              static_cast<Unsigned>(sum + static_cast<Unsigned>(std::uint64_t{static_cast<Unsigned>(shared.a[row][x])} *
                                                                static_cast<Unsigned>(shared.b[x][column])));
        }
        thread.barrier();
      }
      if (i < args.m && j < args.n)
        static_cast<T*>(args.y)[item * args.m * args.n + i * args.n + j] = static_cast<T>(sum);
    }
  }
};

/// y [rows, n] = bias [n], the product of matrices without an inner dimension, or y + bias; or the relu of that.
struct BiasArgs {
  const float* bias = nullptr;
  float* y = nullptr;
  std::int64_t count = 0;  ///< of y
  std::int64_t n = 0;
  bool relu = false;
  bool adds = false;  ///< to what y holds
};
struct BiasBody {
  static constexpr const char* name = "bias";
  static constexpr bool has_barriers = false;
  using Args = BiasArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.count; i += thread.count()) {
      const float bias = args.bias[i % args.n], value = args.adds ? args.y[i] + bias : bias;
      args.y[i] = args.relu && value < 0 ? 0 : value;  // NaN stays
    }
  }
};

using ProductBodies = TypeList<BiasBody, ProductBody<std::int8_t>, ProductBody<std::int16_t>, ProductBody<std::int32_t>,
                               ProductBody<std::int64_t>, ProductBody<std::uint8_t>, ProductBody<std::uint16_t>,
                               ProductBody<std::uint32_t>, ProductBody<std::uint64_t>>;

}  // namespace dflow::cuda
