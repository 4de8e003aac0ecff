#pragma once

#include <dflow/kernels/cuda/bodies/arrays.hpp>
#include <dflow/kernels/cuda/grid/error_slot.hpp>
#include <dflow/ops/data_flow/partition.hpp>

#include <cstdint>

namespace dflow::cuda {

/// y[to[i]] = x[from[i]] for rows i < count; a null list is 0, 1, ...
struct MoveRowsArgs {
  std::int64_t count = 0, row = 0;  ///< elements of a row
  const void* x = nullptr;
  void* y = nullptr;
  const std::int64_t* from = nullptr;
  const std::int64_t* to = nullptr;
};

template <int bytes>
struct MoveRowsBody {
  static constexpr const char* name = "move rows";
  static constexpr bool has_barriers = false;
  using Args = MoveRowsArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    for (std::int64_t i = thread.index(); i < args.count * args.row; i += thread.count()) {
      const std::int64_t number = i / args.row, column = i % args.row;
      const std::int64_t from = args.from == nullptr ? number : args.from[number];
      const std::int64_t to = args.to == nullptr ? number : args.to[number];
      static_cast<Element*>(args.y)[to * args.row + column] =
          static_cast<const Element*>(args.x)[from * args.row + column];
    }
  }
};

/// Finds the shard and the row of each id in a table that is split into shards.
struct ShardArgs {
  std::int64_t count = 0;
  std::int64_t num_rows = 0, num_shards = 1;
  PartitionStrategy strategy = PartitionStrategy::mod;
  const void* ids = nullptr;
  std::int32_t* shards = nullptr;
  void* rows = nullptr;
  ErrorSlot* errors = nullptr;
  std::uint32_t kernel = 0;
};

template <class T>
struct ShardBody {
  static constexpr const char* name = "shards of rows";
  static constexpr bool has_barriers = false;
  using Args = ShardArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.count; i += thread.count()) {
      const std::int64_t id = static_cast<std::int64_t>(static_cast<const T*>(args.ids)[i]);
      if (id < 0 || id >= args.num_rows) {
        note_error(thread, args.errors, args.kernel, [&](ErrorSlot& slot) {
          slot.position = i;
          *reinterpret_cast<std::int64_t*>(slot.values[0]) = id;
        });
        continue;
      }
      const RowInShard at = find_row_in_shard(id, args.num_rows, args.num_shards, args.strategy);
      args.shards[i] = static_cast<std::int32_t>(at.shard);
      static_cast<T*>(args.rows)[i] = static_cast<T>(at.row);
    }
  }
};

using MoveBodies = TypeList<MoveRowsBody<1>, MoveRowsBody<2>, MoveRowsBody<4>, MoveRowsBody<8>, MoveRowsBody<16>,
                            ShardBody<std::int32_t>, ShardBody<std::int64_t>>;

}  // namespace dflow::cuda
