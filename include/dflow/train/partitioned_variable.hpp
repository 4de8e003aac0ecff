#pragma once

#include <dflow/ops/data_flow/embedding.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/initializers.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace dflow {

struct PartitionedVariableOptions {
  /// Called once for each shard, with the shard's shape; one that has a seed gives all shards the same numbers.
  Initializer initializer = init::uniform(-0.05, 0.05);
  /// Of the name scope that the shards are in, as "part_0", "part_1" and so on.
  std::string_view name = "table";
  bool trainable = true;
};

namespace detail {
std::vector<AnyVariable> any_partitioned_variable(GraphStore& graph, DType dtype, const Shape& shape,
                                                  std::int64_t num_shards, const PartitionedVariableOptions& options,
                                                  const At& at);
}  // namespace detail

/// A table of shape [rows, width...] as `num_shards` variables "table/part_0" and so on, [rows / num_shards, width...],
/// the first rows % num_shards of them with a row more: what `embedding_lookup` takes. Inside
/// `graph.device(train::replica_device(cluster))` they lie on different parameter servers. Inside of a `VariableScope`
/// the shards are found or made as that says, under exactly this name.
///
/// Errors: InvalidArgument unless the shape has rows, and 1 <= num_shards <= rows.
template <AllowedFor<Gather> T>
std::vector<Variable<T>> partitioned_variable(Graph& graph, const Shape& shape, std::int64_t num_shards,
                                              const PartitionedVariableOptions& options = {}, const At& at = {}) {
  const std::vector<AnyVariable> made =
      detail::any_partitioned_variable(*graph.store(), dtype_of<T>, shape, num_shards, options, at);
  std::vector<Variable<T>> shards;
  shards.reserve(made.size());
  for (const AnyVariable& shard : made) shards.push_back(shard.as<T>());
  return shards;
}

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/train/partitioned_variable.ipp>
#endif
