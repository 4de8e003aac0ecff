#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/concat.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dflow {

/// Gives each row of data to the output that `partitions` says, in order: data [n..., row...], partitions [n...], and
/// `num_partitions` outputs [rows that it got, row...].
struct DynamicPartition : StandardOp<"DynamicPartition", AllTypes> {
  struct Attrs {
    std::int64_t num_partitions = 1;
  };
  using Inputs = In<T, std::int32_t>;
  using Outputs = Out<List<T>>;
  static std::int64_t output_list_size(const Attrs& attrs) { return attrs.num_partitions; }
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// Puts rows together: N lists of indices [n...] and of data [n..., row...] give [1 + the largest index, row...], where
/// row indices[m][i] is data[m][i]. Of an index that is there more than once the last one counts; a row that no index
/// names is zero.
///
/// Its gradient is TensorFlow's: each row of data has that of the row it was meant for, even if a later one took its
/// place.
struct DynamicStitch : StandardOp<"DynamicStitch", AllTypes, TypeList<std::int32_t>> {
  struct Attrs {
    std::int64_t N = 1;
  };
  using Inputs = In<List<U, "N">, List<T, "N">>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// Which shard of a table has which of its rows, n shards for all: of `mod` row r is row r / n of shard r % n; `div`
/// gives each shard rows that follow each other, and of what is left over one to each of the first.
enum class PartitionStrategy : std::uint8_t { mod, div };

constexpr std::array<std::string_view, 2> attr_enum_names(PartitionStrategy) { return {"mod", "div"}; }

/// For each id [n...], a row of a table of `num_rows` rows in `num_shards` shards: the shard that has it, and the row
/// that it is there.
struct ShardOfRow : StandardOp<"ShardOfRow", IndexTypes> {
  struct Attrs {
    std::int64_t num_rows = 0;
    std::int64_t num_shards = 1;
    PartitionStrategy strategy = PartitionStrategy::mod;
  };
  using Outputs = Out<std::int32_t, T>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// How many rows shard `shard` has, by either strategy: one more than num_rows / num_shards for the first
/// num_rows % num_shards of them.
constexpr std::int64_t rows_of_shard(std::int64_t num_rows, std::int64_t num_shards, std::int64_t shard) {
  return num_rows / num_shards + (shard < num_rows % num_shards ? 1 : 0);
}

/// Where row `id` of a table of `num_rows` rows in `num_shards` shards is. Precondition: it is one of them.
struct RowInShard {
  std::int64_t shard = 0;
  std::int64_t row = 0;
};
DFLOW_FN constexpr RowInShard find_row_in_shard(std::int64_t id, std::int64_t num_rows, std::int64_t num_shards,
                                                PartitionStrategy strategy) {
  if (strategy == PartitionStrategy::mod) return {id % num_shards, id / num_shards};
  const std::int64_t share = num_rows / num_shards, left_over = num_rows % num_shards;
  const bool is_larger = left_over != 0 && id < left_over * (share + 1);  // in a shard that has one row more
  const std::int64_t size = is_larger ? share + 1 : share, from = is_larger ? id : id - left_over;
  return {from / size, from % size};
}

namespace detail {
std::vector<AnyOutput> any_dynamic_partition(const AnyOutput& data, const AnyOutput& partitions,
                                             std::int64_t num_partitions, const At& at = {});
AnyOutput any_dynamic_stitch(std::vector<AnyOutput> indices, const std::vector<AnyOutput>& data, const At& at = {});
/// 0, 1, ... in the shape of x: int32.
AnyOutput positions_like(const AnyOutput& x);
/// "[1,4]": the index of element `position` of a tensor of that shape.
std::string index_to_string(std::int64_t position, const Shape& shape);
/// What is wrong with an id that no row has.
std::string bad_shard_id(const ShardOfRow::Attrs& attrs, std::int64_t position, const Shape& ids, std::int64_t id);
}  // namespace detail

/// Rows of data [n..., row...] by the partition [n...] that each is for: `num_partitions` edges [?, row...].
///
/// ```cpp
/// auto parts = df::dynamic_partition(x, even_or_odd, 2);
/// ```
/// Errors: InvalidArgument if partitions' shape is not the first part of data's or num_partitions is below 1; in the
/// step, naming position and value, if a partition is outside [0, num_partitions).
template <AllowedFor<DynamicPartition> T>
std::vector<Output<T>> dynamic_partition(const Output<T>& data, const Output<std::int32_t>& partitions,
                                         std::int64_t num_partitions, const At& at = {}) {
  return detail::typed<T>(detail::any_dynamic_partition(data, partitions, num_partitions, at));
}

/// The reverse of dynamic_partition: indices [n...] and data [n..., row...], as many of each, give [1 + the largest
/// index, row...] with merged[indices[m][i]] = data[m][i], later ones over earlier ones.
///
/// Errors: InvalidArgument if there are none or not as many of both, or the shapes do not fit; in the step, naming
/// list, position and value, if an index is negative.
template <AllowedFor<DynamicStitch> T>
Output<T> dynamic_stitch(const std::vector<Output<std::int32_t>>& indices, const std::vector<Output<T>>& data,
                         const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_dynamic_stitch({indices.begin(), indices.end()}, {data.begin(), data.end()}, at));
}

}  // namespace dflow
