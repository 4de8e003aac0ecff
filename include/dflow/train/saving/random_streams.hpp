#pragma once

#include <dflow/graph/graph.hpp>

#include <cstdint>
#include <vector>

namespace dflow::train {

/// A random node, and a handle to the stream of the numbers that it draws.
struct StreamOfNode {
  Operation random;
  AnyOutput handle;
  std::int64_t seed = 0;
  std::int64_t seed2 = 0;
};

/// Those of the random nodes that the graph has now; builds the handles where the nodes are.
std::vector<StreamOfNode> random_streams_of(GraphStore& graph);

/// An operation after which all random nodes that the graph has now, and that have seeds, draw what they drew first;
/// empty if there is none.
Operation rewind_random_streams(GraphStore& graph);

}  // namespace dflow::train
