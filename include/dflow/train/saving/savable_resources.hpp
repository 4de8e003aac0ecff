#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/graph/graph.hpp>

#include <vector>

namespace dflow::train {

/// A node that gives a handle to state that can be saved, and the element types of that.
struct SavableNode {
  AnyOutput handle;
  std::vector<DType> dtypes;
};

/// The queues, accumulators, barriers and clocks that the graph has now, but for those of its collection "not_saved".
std::vector<SavableNode> savable_nodes_of(GraphStore& graph);

}  // namespace dflow::train
