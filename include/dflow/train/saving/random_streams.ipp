#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/checkpoint/resource_state.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/train/saving/random_streams.hpp>

#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

namespace dflow::train {

namespace detail {

/// The seeds of a random node: the integer attributes "seed" and "seed2" of a node that keeps state.
std::optional<std::pair<std::int64_t, std::int64_t>> seeds_of(const Node& node) {
  std::optional<std::int64_t> seed, seed2;
  if (!node.op->is_stateful) return std::nullopt;
  for (const AttrField& field : node.op->attr_fields) {
    if (field.kind != AttrKind::integer) continue;
    if (field.name == "seed") seed = std::get<std::int64_t>(attr_of(node, field));
    if (field.name == "seed2") seed2 = std::get<std::int64_t>(attr_of(node, field));
  }
  if (!seed || !seed2) return std::nullopt;
  return std::pair(*seed, *seed2);
}

}  // namespace detail

std::vector<StreamOfNode> random_streams_of(GraphStore& graph) {
  std::vector<StreamOfNode> streams;
  const std::size_t num_nodes = graph.size();
  for (std::size_t i = 0; i < num_nodes; ++i) {
    const Operation random(&graph, NodeId(i));
    const auto seeds = detail::seeds_of(random.node());
    if (!seeds || random.node().op == &op_def<RandomStreamHandle>) continue;
    const ScopeGuard with = enter_colocation(graph, random);
    const AnyOutput handle =
        build<RandomStreamHandle>(graph, {}, {.node = random.name(), .seed = seeds->first, .seed2 = seeds->second});
    streams.push_back({random, handle, seeds->first, seeds->second});
  }
  return streams;
}

Operation rewind_random_streams(GraphStore& graph) {
  const ScopeGuard outside = graph.enter(GraphStore::Scope{});
  const ScopeGuard names = enter_name_scope(graph, "rewind");
  std::vector<Operation> rewound;
  for (const StreamOfNode& stream : random_streams_of(graph)) {
    if (stream.seed == 0 && stream.seed2 == 0) continue;
    const ScopeGuard with = enter_colocation(graph, stream.random);
    const Tensor<std::uint64_t> first(
        {3}, {static_cast<std::uint64_t>(stream.seed), static_cast<std::uint64_t>(stream.seed2), 0});
    const AnyOutput state = dflow::detail::any_constant(graph, first, {});
    rewound.push_back(Operation(build<AssignResourceState>({stream.handle, state}, {.dtypes = {DType::uint64}})));
  }
  return rewound.empty() ? Operation() : group(rewound);
}

}  // namespace dflow::train
