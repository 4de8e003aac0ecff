#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/train/partitioned_variable.hpp>
#include <dflow/train/variables/variable_scope.hpp>

#include <cstddef>
#include <string>

namespace dflow::detail {

DFLOW_INLINE std::vector<AnyVariable> any_partitioned_variable(GraphStore& graph, DType dtype, const Shape& shape,
                                                               std::int64_t num_shards,
                                                               const PartitionedVariableOptions& options,
                                                               const At& at) {
  const auto reject = [&](const std::string& message) {
    throw_error(
        invalid_argument(str_cat("partitioned_variable '", options.name, "': ", message)).with_location(at.where));
  };
  if (shape.rank() < 1) reject("a scalar has no rows");
  if (num_shards < 1 || num_shards > shape[0]) reject(str_cat(shape[0], " rows do not make ", num_shards, " shards"));
  if (!options.initializer) reject("the initializer is empty");
  const ScopeGuard place = enter_place(graph, at.where);
  const ScopeGuard scope = enter_name_scope(graph, options.name, at.where);
  GraphStore::Scope outside = graph.scope();
  outside.control_inputs.clear();  // the first value does not wait for what a step does
  const ScopeGuard without_control_inputs = graph.enter(std::move(outside));
  std::vector<AnyVariable> shards;
  shards.reserve(static_cast<std::size_t>(num_shards));
  for (std::int64_t i = 0; i < num_shards; ++i) {
    const std::string name = str_cat("part_", i);
    const Shape shard = shape.with_dim(0, rows_of_shard(shape[0], num_shards, i));
    if (const VariableScopeState* const around = graph.scope().variables.get(); around != nullptr) {
      shards.push_back(any_get_variable(graph, *around, str_cat(options.name, "/", name), dtype, shard,
                                        {.initializer = options.initializer, .trainable = options.trainable}, at));
      continue;
    }
    AnyOutput initial;
    {
      const ScopeGuard first_value = enter_name_scope(graph, name + "_init");
      initial = options.initializer(graph, dtype, shard);
    }
    shards.push_back(AnyVariable::make(graph, initial, {.name = name, .trainable = options.trainable}, at));
  }
  return shards;
}

}  // namespace dflow::detail
