#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/math/binary.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dflow {

/// Gives each row of data to the output that `partitions` names, in order: data [n..., row...], partitions [n...], and
/// `num_partitions` outputs [its number of rows, row...].
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

/// Puts rows together: N lists of indices [n...] and of data [n..., row...] give [1 + the largest index, row...]. Row
/// indices[m][i] of the result is data[m][i]. If an index occurs more than once, the last one counts; a row that no
/// index names is zero.
///
/// The gradient is TensorFlow's: each row of data gets the gradient of the row it was meant for, even if a later row
/// took its place.
struct DynamicStitch : StandardOp<"DynamicStitch", AllTypes, TypeList<std::int32_t>> {
  struct Attrs {
    std::int64_t N = 1;
  };
  using Inputs = In<List<U, "N">, List<T, "N">>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The shard of each row of a table, with n shards in all. `mod`: row r is row r / n of shard r % n. `div`: each shard
/// gets rows that follow each other, and each of the first shards gets one of the rows left over.
enum class PartitionStrategy : std::uint8_t { mod, div };

constexpr std::array<std::string_view, 2> attr_enum_names(PartitionStrategy) { return {"mod", "div"}; }

/// For each id [n...], a row of a table of `num_rows` rows in `num_shards` shards: the shard that has the row, and the
/// row's number in the shard.
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

/// The number of rows of shard `shard`, by either strategy: num_rows / num_shards, plus one for the first num_rows %
/// num_shards of them.
constexpr std::int64_t rows_of_shard(std::int64_t num_rows, std::int64_t num_shards, std::int64_t shard) {
  return num_rows / num_shards + (shard < num_rows % num_shards ? 1 : 0);
}

/// The place of row `id` of a table of `num_rows` rows in `num_shards` shards. Precondition: the table has this row.
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
/// The error for an id that no row has.
std::string bad_shard_id(const ShardOfRow::Attrs& attrs, std::int64_t position, const Shape& ids, std::int64_t id);
}  // namespace detail

/// The rows of data [n..., row...] for each partition in `partitions` [n...]: `num_partitions` edges [?, row...].
///
/// ```cpp
/// auto parts = df::dynamic_partition(x, even_or_odd, 2);
/// ```
/// Errors: InvalidArgument if the shape of partitions is not the first part of data's shape, or if num_partitions is
/// below 1. In the step: InvalidArgument, naming position and value, if a partition is outside [0, num_partitions).
template <class A, class B>
  requires Accepts<DynamicPartition, A, B>
std::vector<Output<ElementFor<DynamicPartition, A, B>>> dynamic_partition(const A& data, const B& partitions,
                                                                          std::int64_t num_partitions,
                                                                          const At& at = {}) {
  const auto edges = detail::edges_for<DynamicPartition>(at, data, partitions);
  return detail::typed<ElementFor<DynamicPartition, A, B>>(
      detail::any_dynamic_partition(edges[0], edges[1], num_partitions, at));
}

/// The reverse of dynamic_partition: indices [n...] and data [n..., row...], as many of each, give [1 + the largest
/// index, row...] with merged[indices[m][i]] = data[m][i]. Later rows replace earlier ones.
///
/// Errors: InvalidArgument if there are no indices, if the numbers of indices and data differ, or if the shapes do not
/// fit. In the step: InvalidArgument, naming list, position and value, if an index is negative.
template <AllowedFor<DynamicStitch> T>
Output<T> dynamic_stitch(const std::vector<Output<std::int32_t>>& indices, const std::vector<Output<T>>& data,
                         const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_dynamic_stitch({indices.begin(), indices.end()}, {data.begin(), data.end()}, at));
}

namespace detail {
/// weights: empty for ones of int32.
AnyOutput any_bincount(const AnyOutput& values, const AnyOutput& size, const AnyOutput& weights, const At& at);
}  // namespace detail

/// How often each of the numbers 0 ... size - 1 stands in `values`, [size]: TensorFlow's Bincount. values: int32 of any
/// shape, size: a scalar of int32. Numbers from `size` on are left out.
///
/// Errors: InvalidArgument in the step, if a value or the size is negative.
template <class A, class B>
  requires Accepts<Mod, A, B> && std::same_as<ElementFor<Mod, A, B>, std::int32_t>
Output<std::int32_t> bincount(const A& values, const B& size, const At& at = {}) {
  const auto edges = detail::edges_for<Mod>(at, values, size);
  return Output<std::int32_t>::unchecked(detail::any_bincount(edges[0], edges[1], {}, at));
}
/// The same with the weights of each number added up, in place of ones: weights of any numbers, in the shape of values.
template <class A, class B, AllowedFor<Add> T>
  requires Accepts<Mod, A, B> && std::same_as<ElementFor<Mod, A, B>, std::int32_t>
Output<T> bincount(const A& values, const B& size, const Output<T>& weights, const At& at = {}) {
  const auto edges = detail::edges_for<Mod>(at, values, size);
  return Output<T>::unchecked(detail::any_bincount(edges[0], edges[1], weights, at));
}

namespace detail {
AnyOutput any_boolean_mask(const AnyOutput& x, const AnyOutput& mask, const At& at);
}  // namespace detail

/// The elements or rows of x for which the mask is true, in order: x [n..., row...], mask [n...] gives [count, row...].
/// TensorFlow's boolean_mask, as Where, Reshape and Gather. Its gradient by x is zero in the rows that are left out.
///
/// ```cpp
/// auto kept = df::boolean_mask(rows, scores > 0.5f);  // rows: [n, width], scores: [n]
/// ```
/// Errors: InvalidArgument if the rank of the mask is 0 or unknown, or its shape is not the first part of that of x; in
/// the step if the shapes are known only there.
template <Element T, detail::ArgumentOf<TypeList<bool>> M>
Output<T> boolean_mask(const Output<T>& x, const M& mask, const At& at = {}) {
  return Output<T>::unchecked(detail::any_boolean_mask(x, detail::edge_beside<TypeList<bool>>(x, mask, at), at));
}

}  // namespace dflow
