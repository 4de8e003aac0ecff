#pragma once

#include <dflow/graph/graph.hpp>

#include <cstdint>
#include <vector>

namespace dflow::train {

/// A random node, and a handle to the stream of its random numbers.
struct StreamOfNode {
  Operation random;
  AnyOutput handle;
  std::int64_t seed = 0;
  std::int64_t seed2 = 0;
};

/// The streams of all random nodes that the graph has now; builds each handle beside its node.
std::vector<StreamOfNode> random_streams_of(GraphStore& graph);

/// An operation that makes all random nodes with seeds that the graph has now draw their first numbers again; empty
/// if there are none.
Operation rewind_random_streams(GraphStore& graph);

}  // namespace dflow::train
