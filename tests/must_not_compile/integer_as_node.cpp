// expect: no matching function|cannot convert|could not convert|no viable conversion
#include <dflow/graph/graph.hpp>

const dflow::Node& node(const dflow::Graph& graph) { return graph.node(3); }
