#pragma once

#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/data_flow/partition.hpp>
#include <dflow/ops/state/typed_variable.hpp>

#include <span>
#include <vector>

namespace dflow {

namespace detail {
AnyOutput any_embedding_lookup(std::span<const AnyVariable> shards, const AnyOutput& ids, PartitionStrategy strategy,
                               const At& at);
}  // namespace detail

/// The rows of a table [vocabulary, width...] that `ids` [n...] name: [n..., width...]. The table lies in shards, each
/// a variable [rows, width...]; `strategy` maps rows to shards. The first vocabulary % shards of them have one row
/// more than the others.
///
/// ```cpp
/// auto table = df::partitioned_variable<float>(graph, {vocabulary, 64}, 3, {.name = "words"});
/// auto vectors = df::embedding_lookup(table, ids);
/// ```
/// Ids go to the tasks of the shards, and rows come back. The gradient of each shard is IndexedSlices of the rows that
/// were read there. An optimizer therefore updates the rows in place, and no shard is sent whole.
///
/// Errors: InvalidArgument if there are no shards, if their shapes are not known, or if they are not the shapes of one
/// table. In the step: InvalidArgument, naming position, id and range, if an id is outside [0, vocabulary).
template <AllowedFor<Gather> T, detail::ArgumentOf<IndexTypes> Ids>
Output<T> embedding_lookup(const std::vector<Variable<T>>& shards, const Ids& ids,
                           PartitionStrategy strategy = PartitionStrategy::mod, const At& at = {}) {
  const AnyOutput edge =
      detail::edge_beside<IndexTypes>(shards.empty() ? AnyOutput() : AnyOutput(shards.front()), ids, at);
  std::vector<AnyVariable> variables;
  variables.reserve(shards.size());
  for (const Variable<T>& shard : shards) variables.push_back(shard.any_variable());
  return Output<T>::unchecked(detail::any_embedding_lookup(variables, edge, strategy, at));
}

}  // namespace dflow
