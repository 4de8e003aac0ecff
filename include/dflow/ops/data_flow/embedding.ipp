#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/data_flow/embedding.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace dflow::detail {

[[noreturn]] void reject_shards(const std::string& message, const At& at) {
  throw_error(Status::invalid_argument(str_cat("embedding_lookup: ", message)).with_location(at.where));
}

/// The shape of the table that the shards are.
Shape table_shape(std::span<const AnyVariable> shards, const AnyOutput& ids, const At& at) {
  if (shards.empty()) reject_shards("the table has no shards", at);
  if (!ids.is_valid()) reject_shards("the ids are an empty Output", at);
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (!shards[i].handle().is_valid() || !shards[i].handle().shares_graph(ids)) {
      reject_shards(str_cat("shard ", i, " is empty or belongs to another graph than the ids"), at);
    }
    const PartialShape &first = shards[0].shape(), &shape = shards[i].shape();
    if (!shape.is_fully_defined() || shape.rank() < 1) {
      reject_shards(str_cat("shard ", i, ", '", shards[i].name(), "', has shape ", shape.to_string(),
                            "; it must be known, and of rows"),
                    at);
    }
    if (shape.rank() != first.rank() || shape.subshape(1, shape.rank()) != first.subshape(1, first.rank())) {
      reject_shards(str_cat("shard ", i, ", '", shards[i].name(), "', has shape ", shape.to_string(),
                            ", which is not of rows like those of '", shards[0].name(), "', ", first.to_string()),
                    at);
    }
    rows += shape[0];
  }
  const auto count = static_cast<std::int64_t>(shards.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const AnyVariable& shard = shards[static_cast<std::size_t>(i)];
    if (shard.shape()[0] == rows_of_shard(rows, count, i)) continue;
    reject_shards(str_cat("shard ", i, ", '", shard.name(), "', has ", shard.shape()[0], " rows; of ", rows,
                          " rows in ", count, " shards it has ", rows_of_shard(rows, count, i)),
                  at);
  }
  return shards[0].shape().to_shape().with_dim(0, rows);
}

/// rows [number of ids, width...] as [ids..., width...].
AnyOutput in_shape_of_ids(const AnyOutput& rows, const AnyOutput& ids, const Shape& table) {
  const PartialShape& batch = ids.shape();
  if (batch.has_rank() && batch.rank() == 1 && batch[0] == dynamic) return rows;
  const Shape width = table.subshape(1, table.rank());
  if (batch.has_rank()) {
    const PartialShape all = batch.concatenated(width);
    const auto dims = all.dims();
    const auto open = std::count(dims.begin(), dims.end(), dynamic);
    const bool has_zero = std::find(dims.begin(), dims.end(), 0) != dims.end();
    if (open == 0 || (open == 1 && !has_zero)) return build<Reshape>({rows, int32_constant(*ids.graph(), dims)});
  }
  const AnyOutput parts[] = {shape_of(ids), int32_constant(*ids.graph(), width.dims())};
  return build<Reshape>({rows, any_concat(0, parts)});
}

AnyOutput any_embedding_lookup(std::span<const AnyVariable> shards, const AnyOutput& ids, PartitionStrategy strategy,
                               const At& at) {
  const Shape table = table_shape(shards, ids, at);
  GraphStore& graph = *ids.graph();
  const Composite place(graph, at.where);
  const ScopeGuard scope = enter_name_scope(graph, at.name.empty() ? "embedding_lookup" : at.name, at.where);
  const auto gather_where_it_is = [&](const AnyVariable& shard, const AnyOutput& rows) -> AnyOutput {
    const ScopeGuard with = enter_colocation(graph, shard.handle().operation(), at.where);
    return build<Gather>({shard.read_edge(), rows});
  };
  if (shards.size() == 1) return gather_where_it_is(shards[0], ids);
  const auto count = static_cast<std::int64_t>(shards.size());
  const BuiltNode places = build<ShardOfRow>({ids}, {.num_rows = table[0], .num_shards = count, .strategy = strategy});
  const std::vector<AnyOutput> rows = any_dynamic_partition(places.output(1), places.output(0), count);
  std::vector<AnyOutput> positions = any_dynamic_partition(positions_like(ids), places.output(0), count);
  std::vector<AnyOutput> gathered;
  gathered.reserve(shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) gathered.push_back(gather_where_it_is(shards[i], rows[i]));
  return in_shape_of_ids(any_dynamic_stitch(std::move(positions), gathered), ids, table);
}

}  // namespace dflow::detail
