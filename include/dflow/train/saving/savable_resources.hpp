#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/graph/graph.hpp>

#include <string>
#include <vector>

namespace dflow::train {

/// A node that gives a handle to state that can be saved, and the element types of the state.
struct SavableNode {
  AnyOutput handle;
  std::vector<DType> dtypes;
};

/// All queues, accumulators, barriers and clocks of the graph now, except nodes in its collection "not_saved".
std::vector<SavableNode> savable_nodes_of(GraphStore& graph);

namespace detail {
/// The processor of the task that a node was put on; "" where nobody has said which task.
std::string processor_of_task(const GraphStore& graph, const Operation& home);
}  // namespace detail

}  // namespace dflow::train
