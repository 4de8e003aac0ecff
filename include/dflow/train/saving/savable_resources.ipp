#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/core/sum_type.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/data_flow/accumulator.hpp>
#include <dflow/ops/data_flow/barrier.hpp>
#include <dflow/ops/data_flow/lookup_table.hpp>
#include <dflow/ops/data_flow/queue.hpp>
#include <dflow/ops/data_flow/queue_kinds.hpp>
#include <dflow/ops/data_flow/staging.hpp>
#include <dflow/ops/data_flow/staleness_clock.hpp>
#include <dflow/ops/data_flow/token_barrier.hpp>
#include <dflow/ops/io/reader.hpp>
#include <dflow/train/saving/savable_resources.hpp>

#include <algorithm>
#include <cstddef>

namespace dflow::train {

namespace detail {

/// The component types of a node with a queue, or with a resource that holds elements like one; null for other nodes.
const std::vector<DType>* components_of(const Node& node) {
  if (node.op == &op_def<FIFOQueue>) return &node.attrs_as<FIFOQueue>().component_types;
  if (node.op == &op_def<PaddingFIFOQueueV2>) return &node.attrs_as<PaddingFIFOQueueV2>().component_types;
  if (node.op == &op_def<RandomShuffleQueueV2>) return &node.attrs_as<RandomShuffleQueueV2>().component_types;
  if (node.op == &op_def<PriorityQueueV2>) return &node.attrs_as<PriorityQueueV2>().component_types;
  if (node.op == &op_def<StagingAreaOp>) return &node.attrs_as<StagingAreaOp>().dtypes;
  if (node.op == &op_def<BarrierOp>) return &node.attrs_as<BarrierOp>().component_types;
  return nullptr;
}

bool is_reader(const Node& node) {
  return node.op == &op_def<WholeFileReaderOp> || node.op == &op_def<TextLineReaderOp> ||
         node.op == &op_def<FixedLengthRecordReaderOp> || node.op == &op_def<TFRecordReaderOp> ||
         node.op == &op_def<IdentityReaderOp>;
}

std::string processor_of_task(const GraphStore& graph, const Operation& home) {
  const Node* node = &home.node();
  while (node->colocated_with.is_valid()) node = &graph.node(node->colocated_with);
  DeviceName device = DeviceName::parse(node->device);
  if (!device.job && !device.task) return {};
  device.type = "CPU";
  device.id = 0;
  return device.to_string();
}

/// The saved types of the resource that the node gives a handle to; empty if it is not saved.
std::vector<DType> saved_types_of(const Node& node) {
  if (node.op == &op_def<TokenBarrier> || node.op == &op_def<StalenessClock>) return {DType::boolean};
  if (node.op == &op_def<ConditionalAccumulator> || node.op == &op_def<SparseConditionalAccumulator>) {
    return {DType::int64, DType::int64, dflow::detail::sum_type(node.types[0])};
  }
  if (node.op == &op_def<MutableHashTableOp> || node.op == &op_def<HashTableOp>) {
    const auto& table = node.attrs_as<MutableHashTableOp>();
    return {DType::int64, table.key_dtype, table.value_dtype};
  }
  if (is_reader(node)) return {DType::string};
  std::vector<DType> types{DType::int64};
  const std::vector<DType>* components = components_of(node);
  if (components == nullptr) return {};
  if (node.op == &op_def<PriorityQueueV2>) types.push_back(DType::int64);
  if (node.op == &op_def<BarrierOp>) types.push_back(DType::string);
  types.insert(types.end(), components->begin(), components->end());
  return types;
}

}  // namespace detail

std::vector<SavableNode> savable_nodes_of(GraphStore& graph) {
  const std::vector<NodeId> left_out = graph.collection("not_saved");
  std::vector<SavableNode> found;
  const std::size_t num_nodes = graph.size();
  for (std::size_t i = 0; i < num_nodes; ++i) {
    const NodeId id(i);
    std::vector<DType> types = detail::saved_types_of(graph.node(id));
    if (types.empty() || std::find(left_out.begin(), left_out.end(), id) != left_out.end()) continue;
    found.push_back({AnyOutput(&graph, Endpoint{id, 0}), std::move(types)});
  }
  return found;
}

}  // namespace dflow::train
