// expect: no matching function|cannot convert|could not convert|no viable conversion
#include <dflow/graph/graph.hpp>
#include <dflow/graph/step_graph.hpp>

// The number of a node in a step is none of the graph's.
const dflow::Node& node(const dflow::Graph& graph, const dflow::StepGraph& step) { return graph.node(step.targets[0]); }
