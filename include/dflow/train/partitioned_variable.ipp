#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/train/partitioned_variable.hpp>
#include <dflow/train/variables/variable_scope.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace dflow::detail {

[[noreturn]] void reject_partitioned(const PartitionedVariableOptions& options, const At& at,
                                     const std::string& message) {
  throw_error(Status::invalid_argument(str_cat("partitioned_variable '", options.name, "': ", message))
                  .with_location(at.where));
}

/// The slice of the whole that a part is, in the form that `SaveV2` takes.
std::string slice_of_part(const VariablePart& part) {
  std::string dims, ranges;
  for (int d = 0; d < part.whole.rank(); ++d) {
    dims += str_cat(part.whole[d], " ");
    if (d > 0) ranges += ":";
    ranges += part.shape[d] == part.whole[d] ? std::string("-")
                                             : str_cat(part.begin[static_cast<std::size_t>(d)], ",", part.shape[d]);
  }
  return dims + ranges;
}

/// Leaves random nodes in the current name scope out of checkpoints. The positions of the streams of a first value are
/// of no use to other parts, and a checkpoint would have no entry for the other parts.
void leave_out_streams(GraphStore& graph, const AnyOutput& initial) {
  if (!initial.is_of(&graph)) return;  // refused later
  const std::string scope = graph.scope().name_prefix;
  std::vector<NodeId> next{initial.node_id()};
  std::set<std::size_t> seen;
  while (!next.empty()) {
    const NodeId id = next.back();
    next.pop_back();
    const Node& node = graph.node(id);
    if (!node.name.starts_with(scope) || !seen.insert(id.position()).second) continue;
    if (node.op->is_stateful) graph.add_to_collection("not_saved", id);
    for (const Endpoint& input : node.inputs) next.push_back(input.node);
  }
}

MadeParts make_parts(GraphStore& graph, DType dtype, const Shape& shape, int axis, std::int64_t num_parts,
                     const PartitionedVariableOptions& options, const At& at) {
  const Composite place(graph, at.where);
  const ScopeGuard scope = enter_name_scope(graph, options.name, at.where);
  GraphStore::Scope outside = graph.scope();
  outside.control_inputs.clear();  // the first value does not wait for the nodes of a step
  const ScopeGuard without_control_inputs = graph.enter(std::move(outside));
  MadeParts made{.parts = {}, .axis = axis};
  made.parts.reserve(static_cast<std::size_t>(num_parts));
  VariablePart part{shape, shape, std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()))};
  for (std::int64_t i = 0; i < num_parts; ++i) {
    const std::string name = str_cat("part_", i);
    part.shape = shape.with_dim(axis, rows_of_shard(shape[axis], num_parts, i));
    const std::string slice = slice_of_part(part);
    const Initializer initializer = [&options, &part](GraphStore& of, DType type, const Shape&) {
      const AnyOutput initial = options.initializer.of_part(of, type, part);
      leave_out_streams(of, initial);
      return initial;
    };
    if (const auto around = open_variable_scope(graph); around != nullptr) {
      made.parts.push_back(
          any_get_variable(graph, *around, str_cat(options.name, "/", name), dtype, part.shape,
                           {.initializer = initializer, .trainable = options.trainable, .slice = slice}, at));
    } else {
      const auto first_value = [&] {
        const ScopeGuard names = enter_name_scope(graph, name + "_init");
        return initializer(graph, dtype, part.shape);
      };
      made.parts.push_back(
          AnyVariable::make_unlisted(graph, dtype, part.shape, first_value, {.name = name, .slice = slice}, at));
      const NodeId handle = made.parts.back().handle().node_id();
      graph.add_to_collection("variables", handle);
      if (options.trainable) graph.add_to_collection("trainable_variables", handle);
    }
    part.begin[static_cast<std::size_t>(axis)] += part.shape[axis];
  }
  return made;
}

MadeParts any_partitioned_variable(GraphStore& graph, DType dtype, const Shape& shape,
                                   const PartitionedVariableOptions& options, const At& at) {
  if (shape.rank() < 1) reject_partitioned(options, at, "a scalar has no parts");
  if (!options.initializer) reject_partitioned(options, at, "the initializer is empty");
  const dflow::Partitioner partitioner =
      options.partitioner ? options.partitioner : variable_scope_of(graph)->partitioner;
  if (!partitioner) return make_parts(graph, dtype, shape, 0, 1, options, at);
  const std::vector<std::int64_t> parts = partitioner(shape, dtype);
  if (parts.size() != static_cast<std::size_t>(shape.rank())) {
    reject_partitioned(options, at,
                       str_cat("the partitioner gives ", parts.size(), " numbers for shape ", shape.to_string()));
  }
  int axis = 0;
  std::int64_t num_parts = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    const std::int64_t along = parts[static_cast<std::size_t>(d)];
    if (along < 1 || along > std::max<std::int64_t>(shape[d], 1)) {
      reject_partitioned(options, at, str_cat(shape.to_string(), " does not make ", along, " parts along axis ", d));
    }
    if (along == 1) continue;
    if (num_parts > 1) reject_partitioned(options, at, str_cat("parts along axes ", axis, " and ", d));
    axis = d;
    num_parts = along;
  }
  return make_parts(graph, dtype, shape, axis, num_parts, options, at);
}

MadeParts any_partitioned_variable(GraphStore& graph, DType dtype, const Shape& shape, std::int64_t num_parts,
                                   const PartitionedVariableOptions& options, const At& at) {
  if (shape.rank() < 1) reject_partitioned(options, at, "a scalar has no rows");
  if (options.partitioner) reject_partitioned(options, at, "a number of parts and a partitioner");
  if (num_parts < 1 || num_parts > shape[0]) {
    reject_partitioned(options, at, str_cat(shape[0], " rows do not make ", num_parts, " parts"));
  }
  if (!options.initializer) reject_partitioned(options, at, "the initializer is empty");
  return make_parts(graph, dtype, shape, 0, num_parts, options, at);
}

}  // namespace dflow::detail
