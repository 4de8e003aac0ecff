#pragma once

#include <dflow/base/config.hpp>
#include <dflow/graph/graph.hpp>

#include <string>

namespace dflow {

/// A graph as the bytes of TensorFlow's GraphDef (tensorflow/core/framework/graph.proto), for TensorBoard's graph page
/// and other tools that show graphs. Each node has its name with its scopes, op, inputs, device, element types,
/// attributes, the shapes of its outputs ("_output_shapes") and its colocated nodes ("_class"). Tensors of more than
/// `max_shown_tensor_bytes` are written without their elements: the result shows a graph and does not save one.
///
/// Thread safety: the graph may grow meanwhile; nodes that are added then may be missing.
std::string tensorflow_graph_def(const GraphStore& graph);
inline std::string tensorflow_graph_def(const Graph& graph) { return tensorflow_graph_def(*graph.store()); }
inline constexpr std::size_t max_shown_tensor_bytes = 1024;

}  // namespace dflow
